#include "models/graph/context_part.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

TEST(ContextPart, WholeSamplesAreOnePart) {
  EXPECT_THAT(ContextPart().Tokens(7), ElementsAre(TokenSlice{0, 7}));
  EXPECT_THAT(ContextPart().Tokens(7, {2, 3}), ElementsAre(TokenSlice{2, 3}));
}

TEST(ContextPart, BalancedPartsAreTwoChunks) {
  const ContextPart first{2, 0, true}, second{2, 1, true};
  EXPECT_THAT(first.Tokens(16), ElementsAre(TokenSlice{0, 4}, TokenSlice{12, 4}));
  EXPECT_THAT(second.Tokens(16), ElementsAre(TokenSlice{4, 4}, TokenSlice{8, 4}));
  EXPECT_THAT(second.Tokens(16, {2, 4}), ElementsAre(TokenSlice{6, 2}, TokenSlice{8, 2}));
  EXPECT_THAT(first.Tokens(16, {4, 4}), ElementsAre(TokenSlice{12, 4}));
  EXPECT_THAT((ContextPart{4, 3, false}).Tokens(16), ElementsAre(TokenSlice{12, 4}));
}

// All devices together have each token once, and the same sum of places: as many keys to see.
TEST(ContextPart, PartsCoverTheSampleEvenly) {
  for (const int64_t parts : {1, 2, 3, 4, 8}) {
    constexpr int64_t kTokens = 48;
    std::vector<int> seen(kTokens);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t places = 0;
      for (const TokenSlice& s : ContextPart{parts, part, /*balanced=*/true}.Tokens(kTokens)) {
        for (int64_t token = s.first; token < s.end(); ++token) {
          ++seen[token];
          places += token;
        }
      }
      EXPECT_EQ(places * parts, kTokens * (kTokens - 1) / 2);
    }
    EXPECT_THAT(seen, testing::Each(1));
  }
}

}  // namespace
}  // namespace pipelab
