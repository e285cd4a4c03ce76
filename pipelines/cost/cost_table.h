// Times and sizes of one program: what the simulator needs to know of a model on a machine.
//
//   CostTable::Unit(program.schedule)     // F = 1, B = 2, I = W = 1 (units of 1 ms)
//   cost/stage_costs.h                    // from a model graph on a machine
//   *ReplayCosts(program, traces)         // sim/replay.h: from measured traces
#ifndef PIPELAB_PIPELINES_COST_COST_TABLE_H_
#define PIPELAB_PIPELINES_COST_COST_TABLE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/graph/collective.h"
#include "models/graph/tensor_parallel.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/state_numbers.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "tools/base/units.h"

namespace pipelab {

// Bytes of one stage for one micro-batch, by what the runtime does
// (pipelines/runtime/layer_stage.h). Inputs and outputs are edges (CostTable::edge_bytes); a
// forward keeps its inputs until the backward.
struct StageMemory {
  // Left by a forward for its backward, besides the inputs; below 0 where it lets go of inputs that
  // no backward reads.
  Bytes kept;
  Bytes kept_for_weight;  // left by I for W, inputs included
  // Token slices only. Of `kept`, what is left by a forward of a stage that recomputes, because
  // later slices read it; and what a backward (B or I) leaves for those of earlier slices, less
  // what it was left and releases.
  Bytes kept_when_dropped, carried;
  // The most that the device holds during an action above what it held before it, results included.
  Bytes forward_peak;
  Bytes forward_drop_peak;  // a forward of a stage that recomputes: keeps its inputs only
  Bytes recompute_peak;
  Bytes backward_peak;
  Bytes backward_input_peak;
  Bytes backward_weight_peak;
  // What stays of forward_peak and recompute_peak for the backward.
  Bytes forward_peak_kept, recompute_peak_kept;
  // For the device as long as it runs.
  Bytes state;  // weights, gradients, optimizer state
  // One version of the weights, which is part of `state`; older ones that live come on top.
  Bytes weights;
  StateNumbers numbers;
  // What the optimizer keeps of these, part of `state`: tensors of as many numbers. With narrow
  // weights the masters are one.
  Bytes optimizer;
  // Running statistics, part of `state`: every copy has them whole.
  Bytes statistics;
  // What copies of the stage sum: gradients of parameters that no tie shares, part of `state`.
  Bytes gradients;
  // Gradients of the experts that a device has (TensorParallel::experts): copies with the same ones
  // sum them. Not part of `gradients`.
  Bytes expert_gradients;
  // A bit for each of CostTable::gradient_buffers that the stage uses, not part of `state`: stages
  // of one device share them.
  uint64_t gradient_buffers = 0;

  // How many numbers these are.
  int64_t num_weights() const { return weights.value() / numbers.weights; }
  int64_t num_gradients() const { return gradients.value() / numbers.gradients; }
  int64_t num_expert_gradients() const { return expert_gradients.value() / numbers.gradients; }

  // What follows the size of a micro-batch: all but the state.
  std::array<Bytes*, 12> Activations() {
    return {&kept,
            &kept_for_weight,
            &kept_when_dropped,
            &carried,
            &forward_peak,
            &forward_drop_peak,
            &recompute_peak,
            &backward_peak,
            &backward_input_peak,
            &backward_weight_peak,
            &forward_peak_kept,
            &recompute_peak_kept};
  }
};

// One stage on one device of its group, for the device's own rows of a micro-batch of the stage's
// (Schedule::micro_batches_of_stage). A group of d devices splits a micro-batch of n samples by
// rows, and these are the costs of the fullest member, which has ceil(n / d) samples: fewer rows
// are less work, but not a d-th of it, and scratch may not shrink at all.
struct StageCost {
  // What the device sends within its tensor-parallel group, by rings, in each pass; a recompute as
  // a forward. In a step of sharded parameters each of the shards' devices has its share, on
  // average.
  struct TensorTraffic {
    Bytes forward, backward_input, backward_weight, step;
  };

  // A fused backward costs backward_input + backward_weight, by definition and here only. Where
  // the backward rebuilds blocks (ModelPartition::block_of_layer), `recompute` is the part of
  // backward_input that does so.
  Nanoseconds forward, backward_input, backward_weight, recompute, step;
  StageMemory memory;
  TensorTraffic tensor_traffic;
  // What the device does with the others of its group within its passes, a recompute as a forward:
  // batch normalisation's (models/graph/batch_norm_copies.h). Not part of the times above.
  TensorCollectives statistics;
  // What a forward, and a backward, takes less in a merged pass (Schedule::merges_passes).
  Nanoseconds merged_saving;
};

// One token slice of a micro-batch (TeraPipe).
struct SliceCosts {
  std::vector<StageCost> stages;  // but for `step` and the state, which are CostTable::stages'
  std::vector<Bytes> edge_bytes;
};

// What a message of an edge, and one of its gradient, takes longer than its path's latency.
struct EdgeLatency {
  Nanoseconds forward, gradient;
};

struct CostTable {
  std::vector<StageCost> stages;
  // [edge] The activation of one whole micro-batch, of the smallest where stages run different
  // ones; its gradient has the same size. The members of a group have their rows of it
  // (ir/row_split.h).
  std::vector<Bytes> edge_bytes;
  // [edge] Where messages stand for collectives, whose steps these are. Empty: none do.
  std::vector<EdgeLatency> edge_latency;
  // [slice] Where the schedule has token slices, of which a later one has more attention to
  // compute. Empty: a slice costs 1 / num_slices of the whole micro-batch, in time and in bytes.
  std::vector<SliceCosts> slices;
  // The costs of passes that exchange attention (Program::exchanges), instead of their slice's:
  // each once, and [exchange] which of these it is (exchange_costs.h).
  struct Exchanges {
    std::vector<StageCost> costs;
    std::vector<int32_t> of_pass;
  };
  Exchanges exchanges;
  // `slices` are those of passes: [micro-batch] (Schedule::carried). An edge that carries has the
  // bytes of the pass that makes its tensor.
  bool of_passes = false;
  // Messages: latency + bytes / bandwidth; messages of one ordered pair of devices follow one
  // another. Without a network every ordered pair has a link of its own, of this latency and
  // bandwidth, which its messages share with rings.
  Nanoseconds hop_latency;
  BytesPerSecond bandwidth{0};  // 0: infinite
  Network network;              // links that several pairs share; takes the place of the two above
  // The runtime or its library does a collective's work when it is waited for (in-process
  // communicators do): it begins when all members are at their wait, and not where they begin it.
  bool collectives_at_wait = false;
  // Messages run beside compute; else they occupy the device at either end (sim/simulate.h). With
  // steady_overlap they do so but for a device's steady phase, from its first backward to its last
  // forward, as with Megatron-Core's overlap_p2p_comm.
  bool overlap = true, steady_overlap = false;
  // Collectives run beside compute; else a device stays in them (sim/collective_timeline.h).
  bool overlap_collectives = true;
  // A reduction, after the last member has come: this and a ring all-reduce of its bytes
  // (collectives.h).
  Nanoseconds reduce;
  // Devices that each device of the program stands for: a tensor-parallel group, whose members all
  // do the same.
  int64_t tensor_parallel = 1;
  // Each of them sends its part of a message, and those that receive it gather the whole
  // (models/graph/collective.h), where all have the same rows.
  bool divided_messages = false;
  // For messages in calls (Program::calls): what a tensor-parallel group takes at the end of a call
  // to gather a message that came in parts, by the whole message's bytes.
  PathCost message_gather;
  // From when the host knows that the device is idle until the device works again: at the end of
  // each call, and of each of the norm's sums.
  Nanoseconds launch_gap;
  // The bandwidth of each device's copies to the host and back (kOffload, kReload), which follow
  // one another: where several devices share a way there, its share of it. 0: infinite.
  BytesPerSecond host_bandwidth{0};
  std::vector<Bytes> gradient_buffers;     // models/specs/fused_sums.h
  std::map<std::string, Bytes> tie_bytes;  // by Tie::parameter: the gradient that its stages sum
  // [device] An action takes 1 / speed of its time: 0.5 is a straggler of half the speed. Empty:
  // all 1. Measured instruction times are not changed.
  std::vector<double> device_speed;
  // [micro-batch] When its samples arrive: a stage that nothing feeds does not begin its forward
  // before. Empty: all are there at the start.
  std::vector<Nanoseconds> releases;
  // Replay: [device][instruction] measured durations; empty where stage costs rule.
  std::vector<std::vector<Nanoseconds>> instruction_time;

  // The time of an action; a slice's is 1 / SliceParts of it. The second is that of an action whose
  // stage costs so much.
  Nanoseconds Compute(const Action& action) const;
  Nanoseconds Compute(const Action& action, const StageCost& cost) const;
  // Together, those of CostTable::gradient_buffers whose bits these are.
  Bytes GradientBuffers(uint64_t buffers) const;
  // The costs of a compute, with what it exchanges.
  const StageCost& CostOf(const Instruction& i) const {
    if (i.arg >= 0 && !exchanges.of_pass.empty()) return exchanges.costs[exchanges.of_pass[i.arg]];
    return StageOf(i.action.stage, ShapeOf(i.action));
  }
  const StageCost& StageOf(int stage, int slice) const {
    return slices.empty() ? stages[stage] : slices[slice].stages[stage];
  }
  Bytes EdgeBytesOf(int edge, int slice) const {
    return slices.empty() ? edge_bytes[edge] : slices[slice].edge_bytes[edge];
  }
  // What the stage's group does together within the action.
  const std::vector<TensorCollective>& StatisticsOf(const Action& action) const;
  int ShapeOf(const Action& a) const { return of_passes ? a.micro_batch : a.slice; }
  // The latency of a message, in addition to its path's.
  Nanoseconds LatencyOfEdge(int edge, bool gradient) const {
    if (edge_latency.empty()) return Nanoseconds(0);
    return gradient ? edge_latency[edge].gradient : edge_latency[edge].forward;
  }
  // What costs of a slice as looked up here are to be divided by.
  int64_t SliceParts(const Schedule& schedule) const {
    return slices.empty() ? schedule.num_slices : 1;
  }
  // The parts in which a group sends a message of so many bytes.
  int64_t PartsOfMessage(int64_t bytes) const {
    return divided_messages ? MessageParts(Bytes(bytes), tensor_parallel) : 1;
  }
  // The way of a message that nothing else disturbs.
  PathCost PathBetween(int from, int to) const;
  // What each member of a reduction holds of it: the sum's size.
  Bytes ReductionBytes(const Reduction& reduction) const;
  // Edges have 0 bytes and activations 1 (a slice's, where there are slices), so that
  // peak_activation counts the stage activations that a device holds at a time, each released at
  // its B or W. A slice takes 1 / num_slices of the time: choose a unit that this divides. A
  // micro-batch of n smallest ones takes n times as long and counts n. A device of a group of d
  // takes 1 / d of the time (choose a unit that this divides, too), and what it keeps of its rows
  // counts as the stage's activation.
  static CostTable Unit(const Schedule& schedule, Nanoseconds unit = Milliseconds(1));
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_COST_TABLE_H_
