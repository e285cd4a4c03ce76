// Verdicts on emoji of several names, by hand.
#include "experiments/train/emoji_verdicts.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

// Two emoji of groups 1 and 0; the first has three names, the second one.
EmojiSet TwoEmoji() {
  EmojiSet set;
  set.images.classes = 2;
  set.images.labels = {1, 0};
  set.names = {{0, 0, "a"}, {1, 0, "b"}, {0, 1, "c"}, {0, 2, "d"}};
  return set;
}

// Logits of a probability of group 1.
std::vector<float> LogitsOf(const std::vector<double>& p) {
  std::vector<float> logits;
  for (const double q : p) {
    logits.push_back(static_cast<float>(std::log(1 - q) + 3));  // a constant changes nothing
    logits.push_back(static_cast<float>(std::log(q) + 3));
  }
  return logits;
}

TEST(VerdictsOf, AnEmojiCountsOnce) {
  const EmojiVerdicts v = VerdictsOf(TwoEmoji(), LogitsOf({0.9, 0.3, 0.4, 0.8}));
  EXPECT_THAT(v.by_name, ElementsAre(2.0 / 3, 1));
  EXPECT_THAT(v.together, ElementsAre(1, 1));
}

// 0.99 outvotes two of 0.4, and 0.6 does not.
TEST(VerdictsOf, NamesTogetherAddLogProbabilities) {
  EXPECT_THAT(VerdictsOf(TwoEmoji(), LogitsOf({0.99, 0.7, 0.4, 0.4})).together, ElementsAre(1, 0));
  EXPECT_THAT(VerdictsOf(TwoEmoji(), LogitsOf({0.6, 0.7, 0.4, 0.4})).together, ElementsAre(0, 0));
}

TEST(MeanOver, EmojiByEmoji) {
  EmojiVerdicts a, b;
  a.by_name = {1, 0};
  b.by_name = {0.5, 0};
  EXPECT_THAT(MeanOver({a, b}, &EmojiVerdicts::by_name), ElementsAre(0.75, 0));
}

TEST(VerdictsOf, MisuseDies) {
  EmojiSet set = TwoEmoji();
  EXPECT_DEATH(VerdictsOf(set, LogitsOf({0.5})), "logits.size");
  set.names.erase(set.names.begin() + 1);
  EXPECT_DEATH(VerdictsOf(set, LogitsOf({0.5, 0.5, 0.5})), "emoji 1");
}

}  // namespace
}  // namespace pipelab
