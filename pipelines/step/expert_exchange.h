// How a step's configuration has rows exchanged between devices with experts.
//
//   PIPELAB_RETURN_IF_ERROR(CheckExchanges(graph, config));
//   RowsOfExperts(graph);                       // what tokens choose
//   MergedShare(config);                        // micro-batches whose exchanges run beside others
#ifndef PIPELAB_PIPELINES_STEP_EXPERT_EXCHANGE_H_
#define PIPELAB_PIPELINES_STEP_EXPERT_EXCHANGE_H_

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

// The rows of the first layer with experts; none without one.
absl::optional<RoutedRows> RowsOfExperts(const ModelGraph& graph);

// With exchanges beside compute: micro-batches on a device less those of its warm-up, as a share.
// Interleaved, Megatron-Core has one forward more in the warm-up than else:
// 2 (P - 1) + (V - 1) G + 1 on the first device, in groups of G micro-batches, which counts here
// for all. Without a pipeline these are the V forwards of the first micro-batch.
double MergedShare(const StepConfig& config);

// InvalidArgument naming the word: dispatch or exchanges without experts over several devices,
// layers whose tokens choose differently, schemes and recomputation that do not merge
// micro-batches.
absl::Status CheckExchanges(const ModelGraph& graph, const StepConfig& config);
// Its two parts: how rows go, which the schedule does not change, and what their exchanges run
// beside.
absl::Status CheckDispatch(const ModelGraph& graph, const StepConfig& config);
absl::Status CheckHiddenExchanges(const StepConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_EXPERT_EXCHANGE_H_
