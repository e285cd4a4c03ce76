// The conformance suite over NCCL: the test starts itself once for each of up to eight GPUs, which
// find one another through a file. With fewer than two GPUs nothing can be checked, and every case
// says so.
#include "kernels/cuda/nccl.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/comm/conformance.h"
#include "kernels/comm/process_group.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor/arena.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kMostProcesses = 8;

ProcessGroup* g_processes = nullptr;       // null: no two GPUs
std::string g_why_not = "no CUDA device";  // for whom
std::shared_ptr<gpu::Device>* g_device = nullptr;

class NcclConformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(NcclConformance, Holds) {
  if (g_processes == nullptr) GTEST_SKIP() << "skipped: " << g_why_not;
  bool too_large = false;
  const RankRunner run = [&](int size, const RankBody& body) {
    if (size > g_processes->size()) {
      too_large = true;
      return;
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto own,
                                 MakeNcclCommunicator(g_processes, size, *g_device, kPatience));
    Arena arena(*g_device);
    if (own != nullptr) body(*own, arena);
    EXPECT_THAT(g_processes->Meet(2 * kPatience), IsOk());
    own = nullptr;
  };
  GetParam().run(run);
  if (too_large) GTEST_SKIP() << "skipped: needs more than " << g_processes->size() << " GPUs";
}

INSTANTIATE_TEST_SUITE_P(All, NcclConformance, testing::ValuesIn(ConformanceCases()),
                         [](const testing::TestParamInfo<ConformanceCase>& info) {
                           return info.param.name;
                         });

// One of `size` processes, before anything has touched CUDA in it.
int RunAs(int rank, int size, const std::string& meeting_file) {
  gpu::CudaOptions options;
  options.gpu = rank;
  auto device = gpu::MakeCudaDevice(options);
  if (!device.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, device.status().ToString().c_str());
    return 1;
  }
  auto processes =
      ProcessGroup::Create(rank, size, FileRendezvous(meeting_file, absl::Seconds(60)), {});
  if (!processes.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, processes.status().ToString().c_str());
    return 1;
  }
  g_processes = processes->get();
  g_device = &*device;
  const int failed = RUN_ALL_TESTS();
  g_device = nullptr;
  return failed;
}

// The number of GPUs, asked in a child: a process that has used CUDA must not fork.
int CountGpus() {
  const pid_t child = fork();
  if (child == 0) {
    const auto gpus = gpu::NumGpus();
    _exit(gpus.ok() ? std::min(*gpus, kMostProcesses) : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int Main() {
  const int gpus = CountGpus();
  if (gpus < 2) {
    if (gpus == 1) g_why_not = "one CUDA device; NCCL wants one for each process";
    return RUN_ALL_TESTS();
  }
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string file = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/nccl_", getpid());
  std::vector<pid_t> children;
  for (int rank = 1; rank < gpus; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      testing::GTEST_FLAG(output) = "";
      _exit(RunAs(rank, gpus, file));
    }
    children.push_back(child);
  }
  int result = RunAs(0, gpus, file);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) result = 1;
  }
  return result;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return pipelab::Main();
}
