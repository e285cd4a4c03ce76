// On made-up languages, of which each word has one translation.
#include "experiments/mining/translation_study.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/mining/made_up_pairs.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

std::vector<TextPair> Pairs(int count) {
  return MadeUpPairs(count, {/*letters=*/3, /*words=*/8, /*vocabulary=*/60});
}

TranslationStudyOptions SmallStudy() {
  TranslationStudyOptions options;
  options.translator.layers = 1;
  options.translator.hidden = options.translator.feed_forward = 16;
  options.translator.heads = 2;
  options.translator.steps = 8;
  options.translator.most_pieces = 40;
  options.merges = 200;
  options.dual = true;
  return options;
}

TEST(StudyTranslation, TrainsOnMinedAndOnTruePairsAndMinesAgain) {
  const std::vector<TextPair> pairs = Pairs(300);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationResult result,
                               StudyTranslation(pairs, "xx", SmallStudy()));
  ASSERT_EQ(result.rows.size(), 5u);
  const size_t mined = result.mined.mining.pairs.size(), right = result.mined.task.truth.size();
  ASSERT_GT(mined, 0u);
  EXPECT_EQ(result.Row("Transformer", "mined").count, static_cast<int64_t>(mined));
  EXPECT_EQ(result.Row("Transformer", "true").count, static_cast<int64_t>(right));
  EXPECT_NE(result.Row("Transformer", "mined").quality.chrf,
            result.Row("Transformer", "true").quality.chrf);
  // A dictionary of words knows these languages, and copying knows the numbers alone.
  EXPECT_GT(result.Row("dictionary", "true").quality.chrf, 0.9);
  EXPECT_LT(result.Row("copying", "-").quality.chrf, 0.5);
  // No held-out string is in the pool.
  std::set<std::string> pool(result.mined.task.pool.source.begin(),
                             result.mined.task.pool.source.end());
  const CatalogueSplit split = SplitCatalogues(pairs);
  EXPECT_EQ(result.held_out, static_cast<int64_t>(split.held_out.size()));
  for (const TextPair& p : split.held_out) EXPECT_EQ(pool.count(p.source), 0u) << p.source;
  EXPECT_TRUE(result.dual);
  EXPECT_EQ(result.before, result.mined.mining.pairs);  // all are short
  EXPECT_EQ(result.short_truth, result.mined.task.truth);
  EXPECT_FALSE(result.again_mutual.empty());
  TranslationStudyOptions filled = SmallStudy();
  filled.dual_fill = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationResult in_waits,
                               StudyTranslation(pairs, "xx", filled));
  EXPECT_EQ(in_waits.again, result.again);
  EXPECT_EQ(in_waits.again_mutual, result.again_mutual);
}

// Where no string is short enough nothing is learned and said, and the claims are missed; without
// data they are not made.
TEST(AddTranslation, MissesOrDoesNotMakeWhatItCannotShow) {
  TranslationStudyOptions options = SmallStudy();
  options.translator.most_pieces = 3;  // fewer than any has
  Report made({}), absent({});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationResult result,
                               StudyTranslation(Pairs(60), "xx", options));
  EXPECT_EQ(result.Row("Transformer", "mined").quality.pairs, 0);
  EXPECT_FALSE(result.dual);
  AddTranslation({result}, &made);
  for (const Claim& c : made.claims()) {
    EXPECT_EQ(c.state, c.id == "mining.dual" ? ClaimState::kNotMade : ClaimState::kMissed) << c.id;
  }
  EXPECT_EQ(made.claims().size(), 5u);
  NoTranslationClaims("no data", &absent);
  EXPECT_EQ(absent.claims().size(), 5u);
  for (const Claim& c : absent.claims()) EXPECT_EQ(c.state, ClaimState::kNotMade) << c.id;
}

TEST(StudyTranslation, WithoutStepsHasDictionariesAlone) {
  TranslationStudyOptions options = SmallStudy();
  options.translator.steps = 0;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationResult result,
                               StudyTranslation(Pairs(300), "xx", options));
  EXPECT_EQ(result.rows.size(), 3u);
  Report report({});
  AddTranslation({result}, &report);
  ASSERT_EQ(report.claims().size(), 5u);
  EXPECT_EQ(report.claims()[0].id, "mining.dictionary");
  EXPECT_EQ(report.claims()[0].state, ClaimState::kMet);
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(report.claims()[i].state, ClaimState::kNotMade) << i;
}

}  // namespace
}  // namespace pipelab
