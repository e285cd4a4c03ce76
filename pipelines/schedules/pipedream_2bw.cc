// PipeDream-2BW (Narayanan et al., ICML 2021): 1F1B that never flushes, with two weight versions.
// Gradients of m micro-batches make one update, W(t+1) = W(t) - nu grad f(W(t-1)): every stage
// computes group t of m micro-batches with the weights before the newest update, which all stages
// have by then when m >= P.
//
// --update_interval is m; its default P is the least that the paper allows (and so gives the most
// updates of a run). micro_batches is a run's number of micro-batches. A run begins with version 0
// and ends with a flush, so its first two groups use version 0: the paper's start-up.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/pipedream.h"

namespace pipelab {

namespace {

int UpdateOf(const SchemeParams& params) {
  return params.update_interval == 0 ? params.devices : params.update_interval;
}

}  // namespace

absl::Status CheckPipeDream2Bw(const SchemeParams& params) {
  const int devices = params.devices, group = UpdateOf(params);
  if (group < devices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--update_interval=", group,
                     ": with fewer micro-batches than stages two weight versions are "
                     "not enough; use at least --devices=",
                     devices));
  }
  return CheckUpdates(params, group);
}

absl::StatusOr<Schedule> MakePipeDream2Bw(const SchemeParams& params) {
  const int group = UpdateOf(params);
  return OneForwardOneBackwardWithUpdates(params, group, [group](int, int micro_batch) {
    return std::max(0, micro_batch / group - 1);
  });
}

}  // namespace pipelab
