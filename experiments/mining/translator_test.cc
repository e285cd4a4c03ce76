// On made-up names, which a rule translates letter by letter.
#include "experiments/mining/translator.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/translations.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::vector<TextPair> Names(int count) {
  std::vector<TextPair> pairs;
  for (const Translation& t : SyntheticTranslations(count, 1).translations) {
    if (t.locale == 0) pairs.push_back({t.source, t.target});
  }
  return pairs;
}

// No merges: a piece is a letter.
Subwords Letters() { return Subwords::Learn({}, 0); }

TranslatorOptions Small(int64_t steps) {
  TranslatorOptions options;
  options.layers = 1;
  options.hidden = options.feed_forward = 32;
  options.heads = 2;
  options.dropout = 0;
  options.most_pieces = 16;
  options.least_count = 1;
  options.steps = steps;
  options.warmup_steps = 100;
  options.micro_batch_size = 8;
  options.learning_rate = 1e-2f;
  return options;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Translator, LearnsAndKnowsRightFromWrong) {
  const std::vector<TextPair> names = Names(60);
  std::vector<TextPair> wrong = names;
  for (size_t i = 0; i < names.size(); ++i) wrong[i].target = names[(i + 1) % names.size()].target;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto early,
                               Translator::Train(names, "xa", Letters(), Small(1)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto late,
                               Translator::Train(names, "xa", Letters(), Small(150)));
  EXPECT_LT(late->loss(), early->loss() / 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> right, late->CrossEntropies(names));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> other, late->CrossEntropies(wrong));
  EXPECT_THAT(right, SizeIs(names.size()));
  EXPECT_LT(Mean(right), 0.7 * Mean(other));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> said, late->Translate(names));
  size_t exact = 0;
  for (size_t i = 0; i < names.size(); ++i) exact += said[i] == names[i].target;
  EXPECT_GT(exact, names.size() / 2);
}

// The probabilities of all strings of one letter are parts of one.
TEST(Translator, CrossEntropiesAreOfADistribution) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const auto translator,
      Translator::Train({{"a", "a"}, {"b", "b"}}, "xa", Letters(), Small(40)));
  std::vector<TextPair> pairs = {{"a", "a"}, {"a", "b"}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> nats, translator->CrossEntropies(pairs));
  // Of three pieces each: the space in front, the letter, the end.
  const double right = std::exp(-3 * nats[0]), wrong = std::exp(-3 * nats[1]);
  EXPECT_GT(right, 0.8);
  EXPECT_LE(right + wrong, 1 + 1e-6);
}

TEST(Translator, GivesTheSameBitsAgainAndNamesWhatIsTooLong) {
  const std::vector<TextPair> names = Names(20);
  std::vector<std::vector<double>> nats;
  for (int i = 0; i < 2; ++i) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto translator,
                                 Translator::Train(names, "xa", Letters(), Small(5)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(nats.emplace_back(), translator->CrossEntropies(names));
  }
  EXPECT_EQ(nats[0], nats[1]);
  EXPECT_THAT(Translator::Train({{"longer than 16 letters", "x"}}, "xa", Letters(), Small(5)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 pairs of English and xa")));
}

}  // namespace
}  // namespace pipelab
