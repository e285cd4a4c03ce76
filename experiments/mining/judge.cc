#include "experiments/mining/judge.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace {

bool IsTrue(const MinedPair& pair, const MiningTruth& truth) {
  return std::binary_search(truth.begin(), truth.end(), std::pair(pair.x, pair.y));
}

}  // namespace

MiningScore Judge(const std::vector<MinedPair>& pairs, const MiningTruth& truth) {
  MiningScore score;
  score.of = static_cast<double>(truth.size());
  for (const MinedPair& pair : pairs) {
    ++score.mined;
    if (IsTrue(pair, truth)) ++score.right;
  }
  return score;
}

MiningScore BestScore(const std::vector<MinedPair>& pairs, const MiningTruth& truth) {
  std::vector<MinedPair> sorted = pairs;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const MinedPair& a, const MinedPair& b) { return a.margin > b.margin; });
  MiningScore now, best;
  now.of = best.of = static_cast<double>(truth.size());
  for (const MinedPair& pair : sorted) {
    ++now.mined;
    if (IsTrue(pair, truth)) ++now.right;
    if (now.f1() > best.f1()) best = now;
  }
  return best;
}

}  // namespace pipelab
