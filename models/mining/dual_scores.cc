#include "models/mining/dual_scores.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "models/mining/margin.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Neighbours> DualScores(const std::vector<std::string>& x,
                                      const std::vector<std::string>& y,
                                      const Neighbours& candidates, int k,
                                      const std::function<bool(const TextPair&)>& fits,
                                      const CrossEntropiesOf& forward,
                                      const CrossEntropiesOf& backward) {
  std::vector<std::pair<int32_t, int32_t>> places;
  std::vector<TextPair> there, back;
  for (const auto& [i, j] : CandidatePairs(candidates, k + 1)) {
    const TextPair pair = {x[i], y[j]};
    if (!fits(pair)) continue;
    places.emplace_back(i, j);
    there.push_back(pair);
    back.push_back({pair.target, pair.source});
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> a, forward(there));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> b, backward(back));
  Neighbours scored(candidates.of_x.rows(), candidates.of_y.rows(), k + 1);
  for (size_t p = 0; p < places.size(); ++p) {
    scored.Offer(places[p].first, places[p].second,
                 static_cast<float>(-(std::abs(a[p] - b[p]) + (a[p] + b[p]) / 2)));
  }
  return scored;
}

}  // namespace pipelab
