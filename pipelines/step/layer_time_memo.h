// Times of a model's layers on a machine, each worked out once: most of what a division of the
// devices chooses, most layers do not notice. Private to step.
//
//   LayerTimeMemo memo(graph, FirstAlike(graph), machine);
//   PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* t, memo.TimesOf(config, [&] { return group; }, 5));
//   PIPELAB_ASSIGN_OR_RETURN(Nanoseconds all, memo.WorkOf(config, [&] { return group; }));
#ifndef PIPELAB_PIPELINES_STEP_LAYER_TIME_MEMO_H_
#define PIPELAB_PIPELINES_STEP_LAYER_TIME_MEMO_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

// Where the devices are that divide experts: E, whether whole ones, and what is between them; how
// rows go, and the share of micro-batches whose exchanges run beside others.
using ExpertKey = std::tuple<int, bool, int, RankOrder, Dispatch, Exchanges, double>;
ExpertKey ExpertKeyOf(const StepConfig& config);

// A layer's times depend on these: T, sequence parallelism, whether its collectives overlap, C, its
// exchange, experts, samples.
using LayerSizes = std::tuple<int, bool, bool, int, ContextExchange, ExpertKey, int64_t>;
LayerSizes LayerSizesOf(const StepConfig& config);
// The configuration with one value of all that changes layers' times and not what they keep.
StepConfig WithoutTimesAlone(StepConfig config);

class LayerTimeMemo {
 public:
  using Group = absl::FunctionRef<TensorGroup()>;  // of the configuration

  // The graph must outlive it.
  LayerTimeMemo(const ModelGraph& graph, const std::vector<int>& alike, const Machine& machine);

  // TimesInGraph. Holds until the next call.
  absl::StatusOr<const LayerTimes*> TimesOf(const StepConfig& config, Group group, int layer);
  // The time of all layers and passes together.
  absl::StatusOr<Nanoseconds> WorkOf(const StepConfig& config, Group group);

 private:
  absl::StatusOr<const LayerTimes*> TimesOf(const LayerSizes& sizes, Group group, int layer);
  // TimesOf the layer with exchanges waited for, and what hides taken off.
  absl::StatusOr<LayerTimes> Hidden(LayerSizes sizes, const TensorGroup& group, int layer);
  bool ExchangesContext(int layer) const;

  // Layers that are alike.
  struct Kind {
    int layer = 0, count = 0;
    bool experts = false, context = false;  // whether it notices E; how C exchanges
    absl::flat_hash_map<LayerSizes, LayerTimes> times;
  };

  const ModelGraph& graph_;
  const Machine machine_;
  std::vector<int> kind_of_layer_;
  std::vector<Kind> kinds_;
  absl::flat_hash_map<LayerSizes, Nanoseconds> work_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_LAYER_TIME_MEMO_H_
