// On made-up names, which a rule translates letter by letter.
#include "experiments/mining/translator.h"

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "experiments/mining/scoring_in_waits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
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

TranslatorOptions SmallTranslator(int64_t steps) {
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
                               Translator::Train(names, "xa", Letters(), SmallTranslator(1)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto late,
                               Translator::Train(names, "xa", Letters(), SmallTranslator(150)));
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
      Translator::Train({{"a", "a"}, {"b", "b"}}, "xa", Letters(), SmallTranslator(40)));
  std::vector<TextPair> pairs = {{"a", "a"}, {"a", "b"}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> nats, translator->CrossEntropies(pairs));
  // The words have three pieces each: the space in front, the letter, the end.
  const double right = std::exp(-3 * nats[0]), wrong = std::exp(-3 * nats[1]);
  EXPECT_GT(right, 0.8);
  EXPECT_LE(right + wrong, 1 + 1e-6);
}

TEST(Translator, GivesTheSameBitsAgainAndNamesWhatIsTooLong) {
  const std::vector<TextPair> names = Names(20);
  std::vector<std::vector<double>> nats;
  for (int i = 0; i < 2; ++i) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto translator,
                                 Translator::Train(names, "xa", Letters(), SmallTranslator(5)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(nats.emplace_back(), translator->CrossEntropies(names));
  }
  EXPECT_EQ(nats[0], nats[1]);
  EXPECT_THAT(
      Translator::Train({{"longer than 16 letters", "x"}}, "xa", Letters(), SmallTranslator(5)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 pairs of English and xa")));
}

// Every name with every one, as a pool's candidates are.
std::vector<TextPair> AllWithAll(const std::vector<TextPair>& names) {
  std::vector<TextPair> pool;
  for (const TextPair& a : names) {
    for (const TextPair& b : names) pool.push_back({a.source, b.target});
  }
  return pool;
}

std::map<std::string, std::vector<float>> ValuesOf(const Translator& translator) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, tensor] : translator.State().tensors) {
    values[name] = std::get<std::vector<float>>(tensor.values);
  }
  return values;
}

// Parameters and what the optimizer keeps of all gradients, under schemes of several kinds.
TEST(Translator, ScoresInTheWaitsOfAnotherTrainingWithTheSameBits) {
  const std::vector<TextPair> names = Names(20), pool = AllWithAll(names);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto forward,
                               Translator::Train(names, "xa", Letters(), SmallTranslator(30)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> alone, forward->CrossEntropies(pool));
  ASSERT_THAT(alone, SizeIs(pool.size()));
  int64_t in_waits = 0;
  for (const char* scheme : {"gpipe", "1f1b", "zb_h1", "chimera"}) {
    SCOPED_TRACE(scheme);
    TranslatorOptions options = SmallTranslator(12);
    options.scheme = scheme;
    options.seed = 2;
    options.micro_batch_size = 8 * Translator::kScoredAtOnce;  // waits longer than a piece
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto without,
                                 Translator::Train(names, "xb", Letters(), options));
    ScoringInWaits scoring(forward.get(), pool, options.devices);
    options.fill_works = scoring.Works();
    options.fill.learn_steps = 1;
    options.fill.slack = Nanoseconds(0);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto with,
                                 Translator::Train(names, "xb", Letters(), options));
    EXPECT_EQ(with->loss(), without->loss());
    EXPECT_TRUE(ValuesOf(*with) == ValuesOf(*without)) << "parameters differ";
    in_waits += scoring.scored();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> scores, scoring.Finish());
    EXPECT_EQ(scores, alone);
  }
  EXPECT_GT(in_waits, 0);
}

// Wherever it is taken up again.
TEST(Translator, GoesOnWithScoresThatAJobHasBegun) {
  const std::vector<TextPair> names = Names(20);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto translator,
                               Translator::Train(names, "xa", Letters(), SmallTranslator(5)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> all, translator->CrossEntropies(names));
  for (int64_t pieces = 0; pieces * Translator::kScoredAtOnce < static_cast<int64_t>(all.size());
       ++pieces) {
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    const auto nats = std::make_shared<std::vector<double>>();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto job,
                                 translator->CrossEntropyJob(names, backend.get(), nats));
    for (int64_t piece = 0; piece < pieces; ++piece) ASSERT_THAT(job->RunNext(), IsOk());
    ASSERT_THAT(*nats, SizeIs(pieces * Translator::kScoredAtOnce));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> whole,
                                 translator->CrossEntropies(names, *nats));
    EXPECT_EQ(whole, all) << pieces;
  }
}

}  // namespace
}  // namespace pipelab
