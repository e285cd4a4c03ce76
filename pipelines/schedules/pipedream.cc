// PipeDream (Narayanan et al., SOSP 2019): 1F1B that never flushes. Each stage updates its weights
// after every backward, and stashes the weights of a forward for its backward. Stage k of n
// (from 0) runs n - 1 - k forwards ahead, so micro-batch t computes there with the weights after
// t - (n - 1 - k) updates: n - k versions live. With vertical sync a micro-batch uses at all stages
// the version that it met at the first, t - (n - 1): n versions live on each.
//
// micro_batches is a run's number of micro-batches, and updates. A run begins with version 0 and
// ends with a flush, so its first n - 1 - k micro-batches use version 0: the paper's start-up.
#include "pipelines/schedules/pipedream.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::Status CheckUpdates(const SchemeParams& params, int per_update) {
  constexpr int kMaxVersion = std::numeric_limits<int16_t>::max();
  const int m = params.micro_batches;
  if (m % per_update != 0) {
    const int below = m - m % per_update;
    return absl::InvalidArgumentError(absl::StrCat(
        "--micro_batches=", m, ": this scheme updates after every ", per_update, " micro-batches (",
        params.update_interval == 0 ? "--devices" : "--update_interval",
        "); nearest: ", below > 0 ? absl::StrCat(below, " or ") : "", below + per_update));
  }
  if (m / per_update <= kMaxVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--micro_batches=", m,
                                                 ": a run updates after every ", per_update,
                                                 ", at most ", kMaxVersion, " times"));
}

absl::Status CheckPipeDream(const SchemeParams& params) { return CheckUpdates(params, 1); }

Schedule OneForwardOneBackwardWithUpdates(const SchemeParams& params, int per_update,
                                          const std::function<int(int, int)>& version) {
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    std::vector<Action> forwards, backwards;
    for (int m = 0; m < params.micro_batches; ++m) {
      forwards.push_back(Forward(d, m));
      backwards.push_back(Backward(d, m));
      forwards.back().version = backwards.back().version = static_cast<int16_t>(version(d, m));
    }
    int done = 0;
    for (const Action& a : OneForwardOneBackward(forwards, backwards, params.devices - 1 - d)) {
      schedule.order[d].push_back(a);
      if (a.kind != ActionKind::kBackward || ++done % per_update != 0) continue;
      schedule.order[d].push_back(
          {ActionKind::kStep, a.stage, 0, 0, static_cast<int16_t>(done / per_update)});
    }
  }
  return schedule;
}

absl::StatusOr<Schedule> MakePipeDream(const SchemeParams& params) {
  return OneForwardOneBackwardWithUpdates(params, 1, [&](int stage, int micro_batch) {
    return std::max(0, micro_batch - (params.devices - 1 - stage));
  });
}

absl::StatusOr<Schedule> MakePipeDreamVerticalSync(const SchemeParams& params) {
  return OneForwardOneBackwardWithUpdates(params, 1, [&](int, int micro_batch) {
    return std::max(0, micro_batch - (params.devices - 1));
  });
}

}  // namespace pipelab
