// Candidates scored anew by two translators, one of each direction: dual conditional cross-entropy
// (Junczys-Dowmunt, "Dual conditional cross-entropy filtering of noisy parallel corpora", WMT
// 2018).
//
//   PIPELAB_ASSIGN_OR_RETURN(const Neighbours near,
//                            DualScores(x, y, mining.candidates, /*k=*/4, fits, forward,
//                                       backward));
//   MutualPairs(near, MarginKind::kDifference, 4);
//
// score(x, y) = -(|a - b| + (a + b) / 2), where a is the cross-entropy of y given x, in nats a
// token, and b that of x given y: both must be low, and alike. The paper's exponential is left out,
// since a margin is a difference. Scored are the best k + 1 of either side, which a margin needs,
// of those that `fits` lets through: translators may have a longest sentence. The errors are those
// of the translators.
#ifndef PIPELAB_MODELS_MINING_DUAL_SCORES_H_
#define PIPELAB_MODELS_MINING_DUAL_SCORES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/catalogues.h"
#include "models/mining/nearest.h"

namespace pipelab {

// The cross-entropy of each target, given its source.
using CrossEntropiesOf =
    std::function<absl::StatusOr<std::vector<double>>(const std::vector<TextPair>&)>;

// `forward` is given sources of x and targets of y; then `backward`, the reverse.
absl::StatusOr<Neighbours> DualScores(const std::vector<std::string>& x,
                                      const std::vector<std::string>& y,
                                      const Neighbours& candidates, int k,
                                      const std::function<bool(const TextPair&)>& fits,
                                      const CrossEntropiesOf& forward,
                                      const CrossEntropiesOf& backward);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_DUAL_SCORES_H_
