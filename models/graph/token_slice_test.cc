#include "models/graph/token_slice.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TokenSlices, EqualOnesGiveTheRemainderToTheFirst) {
  EXPECT_THAT(EqualTokenSlices(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(EqualTokenSlices(7, 1), ElementsAre(7));
  EXPECT_THAT(EqualTokenSlices(3, 3), ElementsAre(1, 1, 1));
  for (int64_t tokens = 1; tokens < 30; ++tokens) {
    for (int64_t n = 1; n <= tokens; ++n) {
      const std::vector<int64_t> lengths = EqualTokenSlices(tokens, n);
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), tokens);
      EXPECT_LE(lengths.front() - lengths.back(), 1);
    }
  }
}

TEST(TokenSlices, FollowOneAnother) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<TokenSlice> slices, MakeTokenSlices({1, 5, 2}, 8));
  EXPECT_THAT(slices, ElementsAre(TokenSlice{0, 1}, TokenSlice{1, 5}, TokenSlice{6, 2}));
  EXPECT_EQ(slices[2].end(), 8);
  EXPECT_FALSE(slices[0].whole());
  EXPECT_EQ(slices[1].CountOf(8), 5);
}

TEST(TokenSlices, OneIsTheWhole) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {8}}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<TokenSlice> slices, MakeTokenSlices(lengths, 8));
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_TRUE(slices[0].whole());
    EXPECT_EQ(slices[0].CountOf(8), 8);
  }
}

TEST(TokenSlices, RefusesLengthsThatAreNotTheSample) {
  const auto refused = [](std::vector<int64_t> lengths, const char* what) {
    EXPECT_THAT(MakeTokenSlices(lengths, 8),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused({4, 3}, "token slices of 4,3 tokens");
  refused({4, 5}, "together they must be a sample's 8");
  refused({8, 0}, "at least 1");
  refused({9, -1}, "at least 1");
  refused({7}, "token slices of 7");
}

}  // namespace
}  // namespace pipelab
