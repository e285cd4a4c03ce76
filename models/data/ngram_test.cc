// N-gram models against closed forms.
#include "models/data/ngram.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "models/data/text_batches.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// "aab": a twice, b once, two kinds. P(a) = (2 + 2/3) / (3 + 2) over three letters.
TEST(NGram, WittenBellByHand) {
  const std::vector<uint8_t> text = {0, 0, 1};
  const NGramModel one(text, 3, 1);
  const double a = (2 + 2.0 / 3) / 5, b = (1 + 2.0 / 3) / 5, c = (0 + 2.0 / 3) / 5;
  EXPECT_DOUBLE_EQ(one.Probability({}, 0), a);
  EXPECT_DOUBLE_EQ(one.Probability({}, 1), b);
  EXPECT_DOUBLE_EQ(one.Probability({}, 2), c);
  EXPECT_DOUBLE_EQ(one.Loss(text), -(2 * std::log(a) + std::log(b)) / 3);
  const NGramModel two(text, 3, 2);  // after a: a once, b once
  EXPECT_DOUBLE_EQ(two.Probability(std::vector<uint8_t>{2, 0}, 1), (1 + 2 * b) / 4);
  EXPECT_DOUBLE_EQ(two.Probability(std::vector<uint8_t>{1}, 2), c);  // nothing ever followed b
}

TEST(NGram, ProbabilitiesSumToOne) {
  const CounterRng rng(1, "ngram");
  std::vector<uint8_t> text;
  for (int i = 0; i < 3000; ++i) text.push_back(static_cast<uint8_t>(rng.Below(i, 5)));
  const NGramModel model(text, 7, 4);
  for (int start = 0; start < 100; ++start) {
    double sum = 0;
    const auto before = absl::MakeConstSpan(text).subspan(start, 6);
    for (uint8_t c = 0; c < 7; ++c) sum += model.Probability(before, c);
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(NGram, LossOfAPartHasWhatIsBeforeAsContext) {
  const std::vector<uint8_t> text = {0, 1, 2, 0, 1, 2, 0, 1, 0, 2};
  const NGramModel model(text, 3, 3);
  const auto all = absl::MakeConstSpan(text);
  double sum = 0;
  for (int64_t i = 4; i < 7; ++i) sum -= std::log(model.Probability(all.subspan(0, i), text[i]));
  EXPECT_DOUBLE_EQ(model.Loss(text, 4, 7), sum / 3);
  EXPECT_NE(model.Loss(text, 4, 7), model.Loss(all.subspan(4, 3)));
  // Parts make the whole.
  EXPECT_DOUBLE_EQ(4 * model.Loss(text, 0, 4) + 6 * model.Loss(text, 4, 10), 10 * model.Loss(text));
}

TEST(NGram, ReachesTheEntropyOfItsSource) {
  const CounterRng rng(2, "coin");
  std::vector<uint8_t> text;  // three in four are 0
  for (int i = 0; i < 40000; ++i) text.push_back(rng.Below(i, 4) == 0);
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  const auto all = absl::MakeConstSpan(text);
  for (const int order : {1, 3}) {
    const NGramModel model(all.subspan(0, 20000), 2, order);
    EXPECT_NEAR(model.Loss(all.subspan(20000)), entropy, 0.02) << order;
  }
}

TEST(NGram, LongerContextsHelpOnTextWithOrder) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextData data,
                               MakeTextData(SyntheticCorpus(300000, 1), 16, 1));
  const auto loss = [&](int order) {
    return NGramModel(data.train->tokens(), data.vocabulary.size(), order)
        .Loss(data.held_out->tokens());
  };
  const double one = loss(1), two = loss(2), five = loss(5);
  EXPECT_LT(one, std::log(static_cast<double>(data.vocabulary.size())));
  EXPECT_LT(two, one - 0.3);
  EXPECT_LT(five, two - 0.3);
  EXPECT_GT(five, 0.3);  // not to be learned by heart
}

}  // namespace
}  // namespace pipelab
