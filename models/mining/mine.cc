#include "models/mining/mine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/tensor/arena.h"
#include "models/mining/gram_vectors.h"
#include "models/mining/nearest.h"
#include "models/mining/pair_scores.h"
#include "models/mining/sentence.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr float kFirstRatio = 1.06f;

std::vector<MinedPair> PairsByGrams(const GramVectors& grams, const MineOptions& options) {
  if (grams.x.empty() || grams.y.empty()) return {};
  Arena arena;
  const Tensor x = DenseRows(grams.x, kGramDims, &arena);
  const Tensor y = DenseRows(grams.y, kGramDims, &arena);
  const Neighbours near = NearestNeighbours(x, y, options.k + 1, options.threads);
  return MutualPairs(near, MarginKind::kRatio, options.k);
}

// The share of pairs that only one of the two has.
double Changed(const std::vector<MinedPair>& a, const std::vector<MinedPair>& b) {
  std::set<std::pair<int32_t, int32_t>> before;
  for (const MinedPair& p : a) before.insert({p.x, p.y});
  double both = 0;
  for (const MinedPair& p : b) both += static_cast<double>(before.count({p.x, p.y}));
  const double all = static_cast<double>(a.size() + b.size());
  return all == 0 ? 0 : 1 - 2 * both / all;
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

}  // namespace

absl::StatusOr<Mining> Mine(const std::vector<std::string>& x, const std::vector<std::string>& y,
                            const MineOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Sentence> x_sentences, ReadSentences(x, "x"));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Sentence> y_sentences, ReadSentences(y, "y"));
  const GramVectors grams = MakeGramVectors(x_sentences, y_sentences);
  const ScoredList x_list = MakeScoredList(x_sentences), y_list = MakeScoredList(y_sentences);
  ScoreOptions scores;
  scores.threads = options.threads;
  Mining mining;
  mining.grams_alone = PairsByGrams(grams, options);
  std::vector<MinedPair> teachers = AtLeast(mining.grams_alone, kFirstRatio);
  std::vector<MinedPair> learned;
  for (int i = 0; i < options.most_iterations && !teachers.empty(); ++i) {
    const Neighbours near = ScorePairs(x_list, y_list, grams, teachers, scores);
    MineIteration now;
    now.mutual = MutualPairs(near, MarginKind::kDifference, options.k);
    now.threshold = ChooseThreshold(near, now.mutual, options.k, options.precision);
    if (now.threshold.found) now.pairs = AtLeast(now.mutual, now.threshold.margin);
    const Threshold softer = ChooseThreshold(near, now.mutual, options.k, options.teaching);
    const std::vector<MinedPair> last = std::move(learned);
    if (softer.found) learned = AtLeast(now.mutual, softer.margin);
    teachers = Either(learned, last);
    const bool settled = i > 0 && Changed(mining.pairs, now.pairs) <= options.settled;
    mining.pairs = now.pairs;
    mining.iterations.push_back(std::move(now));
    if (settled || !softer.found) break;
  }
  return mining;
}

}  // namespace pipelab
