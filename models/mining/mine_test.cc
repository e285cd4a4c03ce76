// Mining on made-up languages, of which each word has one translation: the truth is known.
#include "models/mining/mine.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/mining_pool.h"
#include "models/mining/dual_scores.h"
#include "models/mining/made_up_pairs.h"
#include "models/mining/pair_classifier.h"
#include "models/mining/sentence.h"
#include "models/mining/sparse_rows.h"
#include "models/mining/word_table.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

ParallelText MadeUpText(int pairs, int first = 0) {
  ParallelText text;
  text.pairs = MadeUpPairs(pairs, {/*letters=*/6, /*words=*/12, /*vocabulary=*/400}, first);
  return text;
}

double RightShare(const std::vector<MinedPair>& pairs, const MiningTruth& truth, size_t of) {
  const std::set<std::pair<int32_t, int32_t>> right(truth.begin(), truth.end());
  double found = 0;
  for (const MinedPair& p : pairs) found += static_cast<double>(right.count({p.x, p.y}));
  return found / static_cast<double>(of);
}

TEST(Mine, LearnsTheDictionaryOfMadeUpLanguages) {
  const MiningTask task = MakeMiningTask(MadeUpText(600), {});
  MineOptions options;
  options.precision = 0.90;  // with so few words the estimate is 0.05 to 0.07 too high
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Mining mining,
                               Mine(task.pool.source, task.pool.target, options));
  EXPECT_GE(RightShare(mining.pairs, task.truth, task.truth.size()), 0.95);
  EXPECT_GE(RightShare(mining.pairs, task.truth, mining.pairs.size()), 0.85);
  // Grams alone know the third with numbers.
  EXPECT_LE(RightShare(mining.grams_alone, task.truth, task.truth.size()), 0.5);
}

TEST(Mine, FindsNothingWhereNothingIs) {
  MiningTaskOptions options;
  options.with_pairs = false;
  for (const int pool : {0, 1, 6, 8}) {  // in the last two the estimate promises enough
    const MiningTask task = MakeMiningTask(MadeUpText(400, 100000 * pool), options);
    EXPECT_TRUE(task.truth.empty());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Mining mining, Mine(task.pool.source, task.pool.target));
    EXPECT_LT(mining.pairs.size(), 0.02 * 200) << pool;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Mining nothing, Mine({}, {"a b c"}));
  EXPECT_TRUE(nothing.pairs.empty());
}

// The judge's file may be there or not, and any number of threads may work.
TEST(Mine, SameBitsWithoutTheTruthAndForAnyThreads) {
  const std::string folder = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "mine-"));
  ASSERT_THAT(WriteMiningTask(MakeMiningTask(MadeUpText(200), {}), folder), IsOk());
  std::vector<std::vector<MinedPair>> mined;
  for (const int threads : {1, 3}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const MiningPool pool, ReadMiningPool(folder));
    MineOptions options;
    options.threads = threads;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Mining mining, Mine(pool.source, pool.target, options));
    mined.push_back(mining.pairs);
    ASSERT_THAT(RemoveTree(JoinPath(folder, "truth.txt")), IsOk());
  }
  EXPECT_FALSE(mined[0].empty());
  EXPECT_EQ(mined[0], mined[1]);
  EXPECT_FALSE(ReadMiningTruth(folder).ok());
}

TEST(Mine, NamesTheSentenceThatIsNotUtf8) {
  EXPECT_THAT(Mine({"right", "wr\xffong"}, {"a"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sentence 2 of x")));
}

TEST(ReadSentence, TakesCaseAndMarksAway) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Sentence s, ReadSentence("Čísla: ÄRGER, Привет — “X2”!"));
  EXPECT_THAT(s.stems, ElementsAre("čísla", "ärger", "привет", "x2"));
  EXPECT_EQ(s.text, U"čísla ärger привет x2");
  EXPECT_THAT(s.names, ElementsAre("x2", "ärger"));
  EXPECT_EQ(s.marks, U"!\"\",-:");
}

TEST(ReadSentence, MarksAreTheSameInAllLanguages) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Sentence english, ReadSentence("Open 'a.b'..."));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Sentence french, ReadSentence("Ouvrir «\u00a0a.b\u00a0»…"));
  EXPECT_EQ(english.marks, U"\"\"....");
  EXPECT_EQ(french.marks, english.marks);
}

// "KDE" is on both sides, "3" and "4" on one, ":" and "!" on one.
TEST(PairScorer, SignsCountNamesAndMarksOfOneSide) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto x, ReadSentences({"KDE 3: new"}, "x"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto y, ReadSentences({"Neu in KDE 4!"}, "y"));
  const ScoredList x_list = MakeScoredList(x), y_list = MakeScoredList(y);
  const GramVectors grams = MakeGramVectors(x, y);
  const PairScorer scorer(x_list, y_list, grams, {}, {});
  const PairSigns signs = scorer.Signs({{0, 0}})[0];
  EXPECT_DOUBLE_EQ(signs.values[13], std::log(3.0));
  EXPECT_DOUBLE_EQ(signs.values[14], std::log(3.0));
}

// "a b" is "x y", "a" is "x": one iteration from t(.|a) = t(.|b) = t(.|null) = 1/2 by hand. In the
// first pair each word gets a third from each of null, a, b; in the second x a half from null and
// a. So the counts of a are 5/6 for x and 1/3 for y: t(x|a) = 5/7.
TEST(TrainWordTable, IsTheHandComputedCase) {
  const WordIds a_b = {0, 1}, x_y = {0, 1}, a = {0}, x = {0};
  const WordTable once = TrainWordTable({{&a_b, &x_y}, {&a, &x}}, 2, 1);
  ASSERT_EQ(once.Of(0).size(), 2u);
  EXPECT_NEAR(once.Of(0)[0].probability, 5.0 / 7, 1e-6);
  EXPECT_NEAR(once.Of(1)[0].probability, 0.5, 1e-6);
  EXPECT_THAT(once.log_likelihoods(), ElementsAre(DoubleNear(std::log(0.5), 1e-12)));
  const WordTable often = TrainWordTable({{&a_b, &x_y}, {&a, &x}}, 2, 30);
  EXPECT_GT(often.Of(0)[0].probability, 0.95f);
  EXPECT_GT(often.Of(1).back().probability, 0.9f);
}

TEST(TrainWordTable, LikelihoodNeverFalls) {
  std::vector<WordIds> sides;
  const CounterRng rng(1, "words");
  for (int i = 0; i < 40; ++i) {
    WordIds words;
    for (int w = 0; w < 6; ++w) words.push_back(static_cast<int32_t>(rng.Below(6 * i + w, 9)));
    sides.push_back(words);
  }
  std::vector<WordPair> pairs;
  for (size_t i = 0; i < sides.size(); i += 2) pairs.push_back({&sides[i], &sides[i + 1]});
  const std::vector<double> l = TrainWordTable(pairs, 9, 20).log_likelihoods();
  for (size_t i = 1; i < l.size(); ++i) EXPECT_GE(l[i], l[i - 1] - 1e-12) << i;
  EXPECT_GT(l.back(), l.front() + 0.01);
}

// Scores of two sentences a side: of the first x, then of the second, with both of y.
Neighbours TwoByTwo(const std::vector<float>& first, const std::vector<float>& second) {
  Neighbours near(2, 2, 3);
  OfferScores(0, 0, first, &near.of_x, &near.of_y);
  OfferScores(1, 0, second, &near.of_x, &near.of_y);
  return near;
}

// Two by two, k = 1: the mean over others of each is the other score of its row or column.
TEST(MutualPairs, MarginIsItsClosedForm) {
  const Neighbours near = TwoByTwo({0.9f, 0.3f}, {0.5f, 0.4f});
  const auto difference = MutualPairs(near, MarginKind::kDifference, 1);
  ASSERT_EQ(difference.size(), 2u);
  EXPECT_FLOAT_EQ(difference[0].margin, 0.9f - (0.3f + 0.5f) / 2);
  EXPECT_FLOAT_EQ(difference[1].margin, 0.4f - (0.5f + 0.3f) / 2);
  EXPECT_EQ(difference[1].y, 1);
  EXPECT_FLOAT_EQ(MutualPairs(near, MarginKind::kRatio, 1)[0].margin, 0.9f / 0.4f);
  // Without y's first sentence its partner takes the other one, if that wants it most.
  const auto hidden = MutualPairs(near, MarginKind::kDifference, 1, {true, false});
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_EQ(hidden[0].x, 1);
}

// Two by two, by hand: a is the target's length, b twice that of the source it is given.
TEST(DualScores, AreTheirClosedForm) {
  const Neighbours near = TwoByTwo({0.9f, 0.3f}, {0.5f, 0.4f});
  const auto forward = [](const std::vector<TextPair>& pairs) {
    std::vector<double> nats;
    for (const TextPair& p : pairs) nats.push_back(static_cast<double>(p.target.size()));
    return nats;
  };
  const auto backward = [](const std::vector<TextPair>& pairs) {
    std::vector<double> nats;
    for (const TextPair& p : pairs) nats.push_back(2.0 * static_cast<double>(p.source.size()));
    return nats;
  };
  const auto score = [&](int k, size_t most_letters) {
    const auto fits = [&](const TextPair& p) { return p.target.size() <= most_letters; };
    return DualScores({"x", "xx"}, {"y", "yyyy"}, near, k, fits, forward, backward).value();
  };
  const Neighbours scored = score(1, 4);
  ASSERT_EQ(scored.of_x.Of(0).size(), 2u);
  EXPECT_EQ(scored.of_x.Of(0)[0].index, 0);
  EXPECT_FLOAT_EQ(scored.of_x.Of(0)[0].score, -(1 + 1.5f));
  EXPECT_FLOAT_EQ(scored.of_x.Of(0)[1].score, -(4 + 6.0f));
  EXPECT_FLOAT_EQ(scored.of_y.Of(1)[0].score, -(4 + 6.0f));
  EXPECT_FLOAT_EQ(scored.of_y.Of(1)[1].score, -(4 + 6.0f));
  // With k = 0 the best of each side are scored: (0, 0), (1, 0) and (1, 1), not (0, 1).
  const Neighbours few = score(0, 4);
  EXPECT_EQ(few.of_x.Of(0)[0].index, 0);
  EXPECT_EQ(few.of_y.Of(1)[0].index, 1);
  const Neighbours fitting = score(1, 1);
  EXPECT_EQ(fitting.of_x.Of(0).size(), 1u);
  EXPECT_TRUE(fitting.of_y.Of(1).empty());
}

// The first 200 of 400 x have their partner with 1. The first 100 and, where `like`, the last 200
// are near to another y, too. The first `copied` have a copy of their partner with 0.9.
Neighbours MadeUpNeighbours(bool like, int copied) {
  constexpr int kSentences = 400;
  Neighbours near(kSentences, 2 * kSentences, 4);
  for (int x = 0; x < kSentences; ++x) {
    if (x < 200) near.Offer(x, x, 1);
    if (x < 100 || (like && x >= 200)) near.Offer(x, x ^ 1, 0.5f);
    if (x < copied) near.Offer(x, kSentences + x, 0.9f);
  }
  return near;
}

std::vector<MinedPair> FirstPairs(int count) {
  std::vector<MinedPair> pairs;
  for (int i = 0; i < count; ++i) pairs.push_back({i, i, 0.5f - static_cast<float>(i) * 1e-3f});
  return pairs;
}

// None of 50 orphans: Wilson's upper end for one standard error is 1 / 51. 50 of 400 sentences are
// mined, so 350 that are not times 1 / 50 are wrong.
TEST(EstimatePrecision, IsItsClosedFormWithoutOrphans) {
  const auto estimates =
      EstimatePrecision(MadeUpNeighbours(false, 0), FirstPairs(200), MarginKind::kDifference, 1);
  ASSERT_EQ(estimates.size(), 200u);
  EXPECT_EQ(estimates[49].pairs, 50);
  EXPECT_FLOAT_EQ(estimates[49].margin, 0.5f - 0.049f);
  EXPECT_NEAR(estimates[49].precision, 1 - 350.0 / 50 / 50, 1e-9);
  const auto likely = EstimatePrecision(MadeUpNeighbours(false, 0), FirstPairs(200),
                                        MarginKind::kDifference, 1, /*errors=*/0);
  EXPECT_EQ(likely[49].precision, 1);
}

// All orphans that are mined are of sentences with others like them, a third of 100. So 200 other
// sentences give some 60 wrong pairs where they are like that, too, and a few where none is.
TEST(EstimatePrecision, CountsOrphansOfSentencesLikeTheOthers) {
  const auto estimate = [](bool like) {
    return EstimatePrecision(MadeUpNeighbours(like, 30), FirstPairs(200), MarginKind::kDifference,
                             1)[199]
        .precision;
  };
  EXPECT_LT(estimate(true), 0.7);
  EXPECT_GT(estimate(false), 0.95);
}

// At the weights the slope of the log likelihood with the prior is 0.
TEST(FitLogistic, IsWhereTheSlopeIsZero) {
  const CounterRng rng(1, "signs");
  std::vector<PairSigns> rows(200);
  std::vector<bool> right;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    for (int a = 0; a < PairSigns::kCount; ++a) {
      rows[i].values[a] = rng.Uniform(PairSigns::kCount * i + a) - 0.5;
    }
    right.push_back(rows[i].values[0] + 0.3 * rows[i].values[1] > 0.2);
  }
  const std::vector<double> weights = FitLogistic(rows, right);
  ASSERT_EQ(weights.size(), static_cast<size_t>(PairSigns::kCount + 1));
  EXPECT_GT(weights[1], weights[2]);
  for (int a = 0; a <= PairSigns::kCount; ++a) {
    double slope = a == 0 ? 0 : -weights[a];
    for (size_t i = 0; i < rows.size(); ++i) {
      double sum = weights[0];
      for (int b = 0; b < PairSigns::kCount; ++b) sum += weights[b + 1] * rows[i].values[b];
      slope +=
          ((right[i] ? 1 : 0) - 1 / (1 + std::exp(-sum))) * (a == 0 ? 1 : rows[i].values[a - 1]);
    }
    EXPECT_NEAR(slope, 0, 1e-6) << a;
  }
}

// Two sentences a side, k = 1. Without its partner the first x takes y's second by margin
// 0.7 - (0 + 0.4) / 2 = 0.5, more than its own pair's.
TEST(OrphanMargins, AreAtMostThePairsOwn) {
  const Neighbours near = TwoByTwo({0.9f, 0.7f}, {0.1f, 0.4f});
  const auto margins = [&](float own) {
    return OrphanMargins(near, {{0, 0, own}}, MarginKind::kDifference, 1);
  };
  EXPECT_THAT(margins(0.3f), ElementsAre(0.3f));
  EXPECT_THAT(margins(0.8f), ElementsAre(FloatEq(0.5f)));
}

TEST(SparseProduct, IsTheInnerProduct) {
  const SparseRow x = {{0, 0.6f}, {2, 0.8f}};
  std::vector<float> scores(2);
  SparseProduct({{{2, 1.0f}}, {{0, 1.0f}, {1, 5.0f}}}, 3).Scores(x, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(0.8f, 0.6f));
}

}  // namespace
}  // namespace pipelab
