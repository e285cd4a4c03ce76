// PipeDream-2BW (Narayanan et al., ICML 2021): 1F1B that never flushes, with two weight versions.
// Gradients of m micro-batches make one update, W(t+1) = W(t) - nu grad f(W(t-1)): every stage
// computes group t of m micro-batches with the weights before the newest update, which all stages
// have by then when m >= P.
//
// Here m = P, the least that the paper allows (and so the most updates of a run). micro_batches is
// a run's number of micro-batches. A run begins with version 0 and ends with a flush, so its first
// two groups use version 0: the paper's start-up.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/pipedream.h"

namespace pipelab {

absl::StatusOr<Schedule> MakePipeDream2Bw(const SchemeParams& params) {
  const int group = params.devices;
  if (params.micro_batches % group != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--micro_batches=", params.micro_batches, ": this scheme updates after every P = ", group,
        " micro-batches; use a multiple of --devices=", group));
  }
  return OneForwardOneBackwardWithUpdates(params, group, [group](int, int micro_batch) {
    return std::max(0, micro_batch / group - 1);
  });
}

}  // namespace pipelab
