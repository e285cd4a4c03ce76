// Times of layers on a device, from their operations: what stage costs and planners are made of.
//
//   PIPELAB_ASSIGN_OR_RETURN(LayerTimes t,
//                            TimesOf(graph.layers[3], {cluster.device, NumberType::kFp16}, 4));
//   t.forward;                       // of 4 samples, nanoseconds
//
// A pass takes the sum of its operations (pipelines/cluster/device.h), one after the other: no two
// of a device's kernels overlap. Where a device says what the host takes to launch them, a layer's
// pass takes that sum where it is the larger one: the host's lead is not carried from layer to
// layer. Collectives of a tensor-parallel group, and those of context parallelism, come between its
// operations and are waited for.
//
// An all-to-all of expert parallelism (Collective::kAllToAll) takes the time of its slowest link,
// with all transfers at once (ExchangePath), and a call's overhead. Nothing runs beside it, but
// where micro-batches are merged (TensorGroup::merged): then what hides (exchange_overlap.h) is
// taken off both of its passes, in equal parts, times the share of micro-batches that are merged.
//
// Where rows of tensor parallelism move beside products (TensorGroup::overlapped), gathers and
// scatters go in T parts, each beside a part of the pass's products, but for one part of these
// (Wang et al. 2023, ASPLOS; Transformer Engine's userbuffers). Parts are as efficient as the
// whole. The head's gather hides too, which Megatron-LM's does not.
//
// Hops of ring attention run beside their step's attention, and a step takes the longer of the two
// (Liu et al. 2023, section 3.1). They are messages: a call's overhead is not counted for them.
//
// A reduce-scatter and an all-gather are the two halves of an all-reduce: its ring, its bytes, and
// half of its call's overhead each, since what was calibrated on all-reduces is mostly that members
// wait for one another, and after a scatter and a norm of own rows they are in step (a bare call of
// NCCL takes 13 to 20 us, ring included). What sequence parallelism gathers once more for weight
// gradients runs beside products, as in Megatron-LM, where the gather of the inputs is under way
// during the product of the input gradient; ours waits for it, so on devices with our kernels it
// counts in full. Korthikanti et al. 2022, section 4.2.2 and table 4: no slower than all-reduces.
#ifndef PIPELAB_PIPELINES_COST_LAYER_TIMES_H_
#define PIPELAB_PIPELINES_COST_LAYER_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "tools/base/units.h"

namespace pipelab {

struct Machine {
  DeviceSpec device;
  NumberType type = NumberType::kFp32;  // of activations, weights and products
};

// Devices that compute layers together (models/graph/tensor_parallel.h).
struct TensorGroup {
  TensorParallel split;
  PathCost hop;  // of its ring: RingStep(cluster, {split.degree, 1}) of cluster/rank_network.h
  // A step of the ring of devices with the other tokens, {split.context, split.degree}; or a
  // message between the farthest of those that exchange attention between slices
  // (exchange_costs.h).
  PathCost context_hop = {};
  // The way of an all-to-all of the devices that divide experts, by what one has for all of them;
  // and of one of the devices with the other tokens.
  PathCost expert_path = {}, context_path = {};

  bool overlapped = false;  // gathers and scatters of rows run beside products
  // Micro-batches whose exchanges run beside the passes of another, as a share of all, and whether
  // weight gradients are delayed for it.
  double merged = 0;
  bool merges = false;  // LayerTimes::merged_saving is wanted
  bool delayed_weights = false;

  // The time of one pass's collectives, one after the other and without overlap. Hops alone run
  // beside their parts of the pass's `attention`, and count with what is left of them.
  Nanoseconds TimeOf(const std::vector<TensorCollective>& collectives, NumberType type,
                     Nanoseconds attention = Nanoseconds(0)) const;
  // What each device sends for them.
  Bytes TrafficOf(const std::vector<TensorCollective>& collectives, NumberType type) const;
  // For all of a layer's passes.
  StageCost::TensorTraffic TrafficOf(const TensorShare& share, NumberType type) const;
  // The devices with the other tokens, whose collectives are TensorShare::context.
  TensorGroup ContextGroup() const {
    TensorGroup group{{split.context}, context_hop, PathCost(), context_path};
    group.split.experts = split.context;  // the devices of an all-to-all
    return group;
  }
};

struct LayerTimes {
  Nanoseconds forward, backward_input, backward_weight;
  StageCost::TensorTraffic traffic;
  Nanoseconds merged_saving;  // StageCost's
  Nanoseconds exchange;       // of the forward's all-to-alls, with their calls
};

// The times of one device of the group. NotFound naming the layer, and what the device lacks.
absl::StatusOr<LayerTimes> TimesOf(const LayerSpec& layer, const Machine& machine, int64_t samples,
                                   TokenSlice slice = TokenSlice(),
                                   const TensorGroup& group = TensorGroup());
// The same of layer `index` of a graph, with what hides of its exchanges beside the layer that
// feeds it and its own passes.
absl::StatusOr<LayerTimes> TimesInGraph(const ModelGraph& graph, int index, const Machine& machine,
                                        int64_t samples, TokenSlice slice,
                                        const TensorGroup& group);
// The same of TimesOf the layer and `before`, those of the layer that feeds it.
LayerTimes WithHiddenExchanges(LayerTimes times, const LayerTimes& before,
                               const TensorGroup& group);

// How long the operations of a pass take that were measured, on any device.
Nanoseconds MeasuredTime(const std::vector<Operation>& pass);

// An optimizer step over so many parameters: one pass over `numbers` of 4 bytes for each (Adam
// reads value, gradient and two moments, and writes all but the gradient: 7).
absl::StatusOr<Nanoseconds> StepTime(const Machine& machine, int64_t parameters, int64_t numbers);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_LAYER_TIMES_H_
