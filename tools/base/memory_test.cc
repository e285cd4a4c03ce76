#include "tools/base/memory.h"

#include <sys/resource.h>

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    PIPELAB_ASSERT_OK_AND_ASSIGN(root_,
                                 MakeTemporaryDirectory(JoinPath(testing::TempDir(), "memory-")));
  }
  void Write(const std::string& path, const std::string& text) {
    EXPECT_THAT(MakeDirectories(root_ + path.substr(0, path.rfind('/'))), IsOk());
    EXPECT_THAT(WriteFileAtomically(root_ + path, text), IsOk());
  }
  int64_t Available() const { return AvailableMemory(root_).value(); }

  std::string root_;
};

TEST_F(AvailableMemoryTest, IsTheLeastOfWhatIsKnown) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(Available(), std::numeric_limits<int64_t>::max());
  }
  Write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(Available(), 1000 * 1024);
  // The process's group has no limit, the one around it has; files that were read are given back.
  Write("/proc/self/cgroup", "1:name=x:/other\n0::/user/job\n");
  Write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/user/job/memory.current", "700000\n");
  EXPECT_EQ(Available(), 1000 * 1024);
  Write("/sys/fs/cgroup/user/memory.max", "900000\n");
  Write("/sys/fs/cgroup/user/memory.current", "700000\n");
  EXPECT_EQ(Available(), 200000);
  Write("/sys/fs/cgroup/user/memory.stat", "anon 600000\ninactive_file 50000\n");
  EXPECT_EQ(Available(), 250000);
  Write("/sys/fs/cgroup/memory.max", "500000\n");  // a container's own
  Write("/sys/fs/cgroup/memory.current", "510000\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(AvailableMemoryTest, KnowsTheFirstControlGroups) {
  Write("/proc/meminfo", "MemAvailable: 1000 kB\n");
  Write("/proc/self/cgroup", "4:memory:/job\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(Available(), 600000);
}

TEST(AvailableMemory, OfThisMachine) { EXPECT_GT(AvailableMemory(), Bytes(0)); }

}  // namespace
}  // namespace pipelab
