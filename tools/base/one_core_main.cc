// main() of tests whose devices are threads that wait for one another (`one_core = True` of
// package_test): they run on one core, which no other such test has at the time. On several cores
// their waits would be yields that cost more than the work between them.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

// The lock of a core, held until the process ends. Without a place for locks, none is held.
bool TakeCore(int core, int flags) {
  const std::string path = "/tmp/pipelab_core_" + std::to_string(core) + ".lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  if (flock(file, LOCK_EX | flags) == 0) return true;
  close(file);
  return false;
}

void StayOnOneCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  int taken = -1;
  for (const int core : cores) {
    if (TakeCore(core, LOCK_NB)) {
      taken = core;
      break;
    }
  }
  // Every core has its test: wait for one. The test's own time limit bounds the wait.
  if (taken < 0 && !cores.empty()) {
    const int core = cores[static_cast<size_t>(getpid()) % cores.size()];
    if (TakeCore(core, 0)) taken = core;
  }
  if (taken < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(taken, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) std::perror("one_core_main: sched_setaffinity");
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::StayOnOneCore();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
