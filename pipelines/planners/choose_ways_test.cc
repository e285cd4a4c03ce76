#include "pipelines/planners/choose_ways.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ChooseWays, ByHand) {
  EXPECT_THAT(ChooseWays({{{3, 8}, {4, 1}}, {{2, 5}}}, 13), ElementsAre(0, 0));
  EXPECT_THAT(ChooseWays({{{3, 8}, {4, 1}}, {{2, 5}}}, 12), ElementsAre(1, 0));
  EXPECT_THAT(ChooseWays({{{3, 8}, {4, 1}}, {{2, 5}}}, 5), IsEmpty());
}

double BruteForce(const std::vector<std::vector<Way>>& ways, size_t from, double bytes) {
  if (from == ways.size()) return bytes >= 0 ? 0 : kInfinity;
  double least = kInfinity;
  for (const Way& way : ways[from]) {
    least = std::min(least, way.time + BruteForce(ways, from + 1, bytes - way.bytes));
  }
  return least;
}

TEST(ChooseWays, IsTheBest) {
  CounterRng rng(5, "ways");
  uint64_t draw = 0;
  for (int round = 0; round < 2000; ++round) {
    // Equal operators are frequent, and so are ties.
    std::vector<std::vector<Way>> ways(1 + rng.Below(draw++, 7));
    for (size_t i = 0; i < ways.size(); ++i) {
      if (i > 0 && rng.Below(draw++, 2) == 0) {
        ways[i] = ways[i - 1];
        continue;
      }
      ways[i].resize(1 + rng.Below(draw++, 3));
      for (Way& way : ways[i]) {
        way.time = static_cast<double>(rng.Below(draw++, 6));
        way.bytes = static_cast<double>(rng.Below(draw++, 9));
      }
    }
    const auto bytes = static_cast<double>(rng.Below(draw++, 30));
    const double best = BruteForce(ways, 0, bytes);
    const std::vector<int> chosen = ChooseWays(ways, bytes);
    ASSERT_EQ(chosen.empty(), best == kInfinity);
    if (chosen.empty()) continue;
    Way total;
    for (size_t i = 0; i < ways.size(); ++i) {
      total.time += ways[i][chosen[i]].time;
      total.bytes += ways[i][chosen[i]].bytes;
    }
    ASSERT_EQ(total.time, best);
    ASSERT_LE(total.bytes, bytes);
  }
}

}  // namespace
}  // namespace pipelab
