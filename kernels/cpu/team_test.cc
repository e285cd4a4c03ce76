#include "kernels/cpu/team.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace cpu {
namespace {

TEST(Team, EachPartOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    Team team(threads);
    for (int64_t n = 0; n < 300; ++n) {
      std::vector<std::atomic<int>> times(n);
      std::atomic<int> odd{0};  // parts that do not begin where they should
      team.Run(n, 7, [&](int64_t begin, int64_t end) {
        odd += begin % 7 != 0 || (end - begin != 7 && end != n);
        for (int64_t i = begin; i < end; ++i) ++times[i];
      });
      EXPECT_EQ(odd, 0);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(times[i], 1) << threads << " threads, " << i;
    }
  }
}

// Some threads take part, so that one may wait for what another does.
TEST(Team, HelpersHelp) {
  Team team(2);
  std::atomic<int> begun{0};
  team.Run(2, 1, [&](int64_t, int64_t) {
    ++begun;
    while (begun < 2) {
    }
  });
  EXPECT_EQ(begun, 2);
}

}  // namespace
}  // namespace cpu
}  // namespace pipelab
