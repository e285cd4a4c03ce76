// What the schemes of the PipeDream family share: 1F1B without a flush between updates. Private to
// the schemes.
//
//   // Updates after every 4 micro-batches, on weights one update old:
//   return OneForwardOneBackwardWithUpdates(params, 4, [](int, int m) { return ...; });
//
// Papers: Narayanan et al., "PipeDream", SOSP 2019; "Memory-efficient pipeline-parallel DNN
// training" (PipeDream-2BW), ICML 2021.
#ifndef PIPELAB_PIPELINES_SCHEDULES_PIPEDREAM_H_
#define PIPELAB_PIPELINES_SCHEDULES_PIPEDREAM_H_

#include <functional>

#include "absl/status/status.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {

// InvalidArgument naming --micro_batches: no multiple of `per_update`, or more versions than an
// action can name.
absl::Status CheckUpdates(const SchemeParams& params, int per_update);

// The order of 1F1B, and a step of a stage after every `per_update` of its backwards; micro_batches
// is a multiple of per_update. `version(stage, micro_batch)`: weights that F and B compute with.
Schedule OneForwardOneBackwardWithUpdates(const SchemeParams& params, int per_update,
                                          const std::function<int(int, int)>& version);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_PIPEDREAM_H_
