#include "pipelines/cost/exchange_overlap.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

MergedBlock Block(int64_t exchange, BlockPartTimes attention, BlockPartTimes experts) {
  return {Nanoseconds(exchange), attention, experts};
}

BlockPartTimes Times(int64_t forward, int64_t input, int64_t weight) {
  return {Nanoseconds(forward), Nanoseconds(input), Nanoseconds(weight)};
}

TEST(HiddenExchanges, AllWhereComputeIsLonger) {
  const MergedBlock block = Block(3, Times(4, 4, 4), Times(5, 5, 5));
  EXPECT_EQ(HiddenExchanges(block, false), Nanoseconds(12));
  EXPECT_EQ(HiddenExchanges(block, true), Nanoseconds(12));
}

TEST(HiddenExchanges, NoneBesideNothing) {
  EXPECT_EQ(HiddenExchanges(Block(7, Times(0, 0, 0), Times(0, 0, 0)), false), Nanoseconds(0));
}

// Two exchanges of 10 in the middle, beside a backward of 6 + 6 and a forward of 4: one ends after
// 12, with the gradients, and the other after 22. With delayed weight gradients they are back to
// back. The attention's 2 and 3 hide as much.
TEST(HiddenExchanges, DelayedWeightGradientsLengthenTheWindow) {
  const MergedBlock block = Block(10, Times(2, 2, 1), Times(4, 6, 6));
  EXPECT_EQ(HiddenExchanges(block, false), Nanoseconds(2 + 14 + 3));
  EXPECT_EQ(HiddenExchanges(block, true), Nanoseconds(2 + 16 + 3));
}

// The merged block never takes less than its compute, nor than its exchanges.
TEST(HiddenExchanges, NothingIsFasterThanComputeAlone) {
  for (int64_t x = 0; x < 12; ++x) {
    for (int64_t e = 0; e < 6; ++e) {
      for (int64_t a = 0; a < 6; ++a) {
        const MergedBlock block = Block(x, Times(a, a + 1, 2), Times(e, 3, e + 2));
        const int64_t compute = 2 * a + 3 + 2 * e + 5;
        const int64_t waited = HiddenExchanges(block, false).value();
        const int64_t delayed = HiddenExchanges(block, true).value();
        for (const int64_t hidden : {waited, delayed}) {
          EXPECT_GE(hidden, 0);
          EXPECT_LE(hidden, std::min(4 * x, compute));
        }
        EXPECT_GE(delayed, waited);
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
