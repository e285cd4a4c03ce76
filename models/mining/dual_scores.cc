#include "models/mining/dual_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/types/span.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What is among the best k + 1 of either side, each once, by x.
std::set<std::pair<int32_t, int32_t>> PairsOf(const Neighbours& candidates, int k) {
  std::set<std::pair<int32_t, int32_t>> pairs;
  const auto best = [k](absl::Span<const Neighbour> list) {
    return list.subspan(0, std::min<size_t>(list.size(), k + 1));
  };
  for (int64_t x = 0; x < candidates.of_x.rows(); ++x) {
    for (const Neighbour& n : best(candidates.of_x.Of(x))) {
      pairs.emplace(static_cast<int32_t>(x), n.index);
    }
  }
  for (int64_t y = 0; y < candidates.of_y.rows(); ++y) {
    for (const Neighbour& n : best(candidates.of_y.Of(y))) {
      pairs.emplace(n.index, static_cast<int32_t>(y));
    }
  }
  return pairs;
}

}  // namespace

absl::StatusOr<Neighbours> DualScores(const std::vector<std::string>& x,
                                      const std::vector<std::string>& y,
                                      const Neighbours& candidates, int k,
                                      const std::function<bool(const TextPair&)>& fits,
                                      const CrossEntropiesOf& forward,
                                      const CrossEntropiesOf& backward) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  std::vector<TextPair> there, back;
  for (const auto& [i, j] : PairsOf(candidates, k)) {
    const TextPair pair = {x[i], y[j]};
    if (!fits(pair)) continue;
    pairs.emplace_back(i, j);
    there.push_back(pair);
    back.push_back({pair.target, pair.source});
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> a, forward(there));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> b, backward(back));
  Neighbours scored = {NeighbourLists(candidates.of_x.rows(), k + 1),
                       NeighbourLists(candidates.of_y.rows(), k + 1)};
  size_t at = 0;
  for (const auto& [i, j] : pairs) {
    const auto score = static_cast<float>(-(std::abs(a[at] - b[at]) + (a[at] + b[at]) / 2));
    scored.of_x.Offer(i, {j, score});
    scored.of_y.Offer(j, {i, score});
    ++at;
  }
  return scored;
}

}  // namespace pipelab
