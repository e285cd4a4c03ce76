#include "pipelines/planners/select_variants.h"

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

constexpr double kNoMix = std::numeric_limits<double>::infinity();

TEST(SelectVariants, ByHand) {
  EXPECT_THAT(SelectVariants({{{3, 8}, {4, 1}}, {{2, 5}}}, 13), ElementsAre(0, 0));
  EXPECT_THAT(SelectVariants({{{3, 8}, {4, 1}}, {{2, 5}}}, 12), ElementsAre(1, 0));
  EXPECT_THAT(SelectVariants({{{3, 8}, {4, 1}}, {{2, 5}}}, 5), IsEmpty());
}

double BruteForceMix(const std::vector<std::vector<VariantCost>>& variants, size_t from,
                     double bytes) {
  if (from == variants.size()) return bytes >= 0 ? 0 : kNoMix;
  double least = kNoMix;
  for (const VariantCost& variant : variants[from]) {
    least =
        std::min(least, variant.time + BruteForceMix(variants, from + 1, bytes - variant.bytes));
  }
  return least;
}

TEST(SelectVariants, IsTheBest) {
  CounterRng rng(5, "ways");
  uint64_t draw = 0;
  for (int round = 0; round < 2000; ++round) {
    // Equal operators are frequent, and so are ties.
    std::vector<std::vector<VariantCost>> variants(1 + rng.Below(draw++, 7));
    for (size_t i = 0; i < variants.size(); ++i) {
      if (i > 0 && rng.Below(draw++, 2) == 0) {
        variants[i] = variants[i - 1];
        continue;
      }
      variants[i].resize(1 + rng.Below(draw++, 3));
      for (VariantCost& variant : variants[i]) {
        variant.time = static_cast<double>(rng.Below(draw++, 6));
        variant.bytes = static_cast<double>(rng.Below(draw++, 9));
      }
    }
    const auto bytes = static_cast<double>(rng.Below(draw++, 30));
    const double best = BruteForceMix(variants, 0, bytes);
    const std::vector<int> chosen = SelectVariants(variants, bytes);
    ASSERT_EQ(chosen.empty(), best == kNoMix);
    if (chosen.empty()) continue;
    VariantCost total;
    for (size_t i = 0; i < variants.size(); ++i) {
      total.time += variants[i][chosen[i]].time;
      total.bytes += variants[i][chosen[i]].bytes;
    }
    ASSERT_EQ(total.time, best);
    ASSERT_LE(total.bytes, bytes);
  }
}

}  // namespace
}  // namespace pipelab
