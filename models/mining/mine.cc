#include "models/mining/mine.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "kernels/tensor/arena.h"
#include "models/mining/gram_vectors.h"
#include "models/mining/nearest.h"
#include "models/mining/pair_classifier.h"
#include "models/mining/pair_scores.h"
#include "models/mining/sentence.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr float kFirstRatio = 1.06f;
constexpr size_t kFirstWords = 5;
constexpr double kGrowth = 1.3;
constexpr double kPoor = 0.3, kNear = 0.02;  // of estimated precisions
constexpr int kHeldOut = 5;                  // one sentence of x in so many
constexpr double kAsOften = 0.75;

// The two lists, as they are scored, and the pairs by grams, which no iteration changes.
struct Lists {
  ScoredList x, y;
  GramVectors grams;
  std::vector<MinedPair> by_grams;
};

int64_t Size(const std::vector<MinedPair>& pairs) { return static_cast<int64_t>(pairs.size()); }

std::vector<MinedPair> PairsByGrams(const GramVectors& grams, const MineOptions& options) {
  if (grams.x.empty() || grams.y.empty()) return {};
  Arena arena;
  const Tensor x = DenseRows(grams.x, kGramDims, &arena);
  const Tensor y = DenseRows(grams.y, kGramDims, &arena);
  const Neighbours near = NearestNeighbours(x, y, options.k + 1, options.threads);
  return MutualPairs(near, MarginKind::kRatio, options.k);
}

// The pairs of longer sentences: short ones are alike by chance.
std::vector<MinedPair> LongPairs(const std::vector<MinedPair>& pairs, const ScoredList& x,
                                 const ScoredList& y) {
  std::vector<MinedPair> kept;
  for (const MinedPair& p : pairs) {
    if (std::min(x.words[p.x].size(), y.words[p.y].size()) >= kFirstWords) kept.push_back(p);
  }
  return kept;
}

// The margin of the best pairs, and of some more than the `before` that taught last: first tables
// are learned from poor pairs, and find better ones.
float MarginOfMore(const std::vector<MinedPair>& mutual, int64_t before) {
  std::vector<float> margins;
  for (const MinedPair& p : mutual) margins.push_back(p.margin);
  std::sort(margins.begin(), margins.end(), std::greater<>());
  return margins[std::min(static_cast<int64_t>(kGrowth * before), Size(mutual)) - 1];
}

// What reaches the wanted precision of teachers; where nothing does, what is near the best one; and
// where that is poor, some more than before.
std::vector<MinedPair> Teachers(const std::vector<MinedPair>& mutual,
                                const std::vector<Threshold>& estimates, int64_t before,
                                const MineOptions& options) {
  if (mutual.empty()) return {};
  const double best = BestPrecision(estimates);
  if (best < kPoor) return AtLeast(mutual, MarginOfMore(mutual, before));
  const double wanted = std::min(options.teaching, best - kNear);
  return AtLeast(mutual, ChooseThreshold(estimates, wanted).margin);
}

// Whether the pairs of a sentence of x teach nothing: one sentence in `held_out`; 0: all teach.
bool IsHeldOut(int32_t x, int held_out) { return held_out > 0 && x % held_out == 0; }

std::vector<MinedPair> WithoutHeldOut(std::vector<MinedPair> pairs, int held_out) {
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [&](const MinedPair& p) { return IsHeldOut(p.x, held_out); }),
              pairs.end());
  return pairs;
}

// The best by tables' scores, scored anew by what is learned from those mined with these scores.
Neighbours Candidates(const PairScorer& scorer, int64_t teachers, const MineOptions& options,
                      int held_out) {
  const Neighbours near = scorer.Best();
  const std::vector<MinedPair> mutual = MutualPairs(near, MarginKind::kDifference, options.k);
  const auto estimates = EstimatePrecision(near, mutual, MarginKind::kDifference, options.k);
  return ClassifyPairs(scorer, near,
                       WithoutHeldOut(Teachers(mutual, estimates, teachers, options), held_out));
}

// What two iterations found, a pair once: from one alone, tables swing between two answers.
std::vector<MinedPair> Either(const std::vector<MinedPair>& a, const std::vector<MinedPair>& b) {
  std::vector<MinedPair> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::stable_sort(all.begin(), all.end(), [](const MinedPair& p, const MinedPair& q) {
    return std::pair(p.x, p.y) < std::pair(q.x, q.y);
  });
  all.erase(
      std::unique(all.begin(), all.end(),
                  [](const MinedPair& p, const MinedPair& q) { return p.x == q.x && p.y == q.y; }),
      all.end());
  return all;
}

// All iterations. mining.pairs are those that reach options.precision.
Mining Iterate(const Lists& lists, const MineOptions& options, int held_out) {
  ScoreOptions scores;
  scores.threads = options.threads;
  Mining mining;
  std::vector<MinedPair> teachers =
      WithoutHeldOut(LongPairs(AtLeast(lists.by_grams, kFirstRatio), lists.x, lists.y), held_out);
  std::vector<MinedPair> learned;
  double right = 0;  // of mining.pairs, as estimated
  int still = 0;     // iterations without growth, one after the other
  for (int i = 0; i < options.most_iterations && !teachers.empty(); ++i) {
    const PairScorer scorer(lists.x, lists.y, lists.grams, teachers, scores);
    mining.candidates = Candidates(scorer, Size(teachers), options, held_out);
    const Neighbours& near = mining.candidates;
    MineIteration now;
    now.mutual = MutualPairs(near, MarginKind::kHalf, options.k);
    const auto estimates = EstimatePrecision(near, now.mutual, MarginKind::kHalf, options.k);
    now.threshold = ChooseThreshold(estimates, options.precision);
    const double now_right = now.threshold.precision * static_cast<double>(now.threshold.pairs);
    const bool better = now_right > right * (1 + options.settled);
    if (right > 0) still = better ? 0 : still + 1;
    if (BestPrecision(estimates) < options.teaching) {
      right = 0;
      mining.pairs.clear();
    }
    if (better) {
      right = now_right;
      mining.pairs = AtLeast(now.mutual, now.threshold.margin);
    }
    now.pairs = mining.pairs;
    const std::vector<MinedPair> before = std::move(learned);
    learned = WithoutHeldOut(Teachers(now.mutual, estimates, Size(teachers), options), held_out);
    mining.iterations.push_back(std::move(now));
    if (still == 2) break;
    teachers = Either(learned, before);
  }
  return mining;
}

// Mines what most likely reaches the precision of teachers after the last iteration.
void MineSoftly(const MineOptions& options, Mining* mining) {
  MineIteration& last = mining->iterations.back();
  const auto likely = EstimatePrecision(mining->candidates, last.mutual, MarginKind::kHalf,
                                        options.k, /*errors=*/0);
  const Threshold softer = ChooseThreshold(likely, options.teaching);
  if (!softer.found) return;
  last.threshold = softer;
  mining->pairs = last.pairs = AtLeast(last.mutual, softer.margin);
}

// How often sentences whose pairs teach nothing are mined, over how often the others are, at the
// margin where the others are mined as often as where all teach, which mined `pairs`.
double HeldOutShare(const Lists& lists, const MineOptions& options, int64_t pairs) {
  const Mining mining = Iterate(lists, options, kHeldOut);
  if (mining.iterations.empty()) return 0;
  std::vector<MinedPair> best = mining.iterations.back().mutual;
  std::stable_sort(best.begin(), best.end(),
                   [](const MinedPair& a, const MinedPair& b) { return a.margin > b.margin; });
  double held_out = 0, others = 0;
  for (const MinedPair& p : best) {
    ++(IsHeldOut(p.x, kHeldOut) ? held_out : others);
    if (others * kHeldOut >= static_cast<double>(pairs * (kHeldOut - 1))) break;
  }
  return others == 0 ? 0 : held_out * (kHeldOut - 1) / others;
}

}  // namespace

absl::StatusOr<Mining> Mine(const std::vector<std::string>& x, const std::vector<std::string>& y,
                            const MineOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Sentence> x_sentences, ReadSentences(x, "x"));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Sentence> y_sentences, ReadSentences(y, "y"));
  GramVectors grams = MakeGramVectors(x_sentences, y_sentences);
  std::vector<MinedPair> by_grams = PairsByGrams(grams, options);
  const Lists lists = {MakeScoredList(x_sentences), MakeScoredList(y_sentences), std::move(grams),
                       std::move(by_grams)};
  Mining mining = Iterate(lists, options, /*held_out=*/0);
  mining.grams_alone = lists.by_grams;
  if (mining.iterations.empty()) return mining;
  if (mining.pairs.empty()) MineSoftly(options, &mining);
  if (mining.pairs.empty()) return mining;
  mining.held_out = HeldOutShare(lists, options, Size(mining.pairs));
  if (mining.held_out < kAsOften) {
    mining.pairs.clear();
    mining.iterations.back().pairs.clear();
  }
  return mining;
}

}  // namespace pipelab
