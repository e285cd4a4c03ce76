// The schedule of a pipeline: which device computes what, in which order. Order only: no times,
// tensors or messages; those come from a cost table, from the runtime and from Lower (program.h).
//
//   Schedule s = *MakeSchedule("1f1b", {.devices = 2, .micro_batches = 2});  // schedules/catalog.h
//   ToText(s)   // device 0: 0F0 0F1 0B0 0B1
//               // device 1: 1F0 1B0 1F1 1B1
//
// Notation, as in PyTorch's CSV form: STAGE KIND MICRO_BATCH, with B the full backward, I its
// input-gradient part, W its weight-gradient part (B = I then W, by definition and here only), R
// recompute, S optimizer step. O and L begin to move what a forward keeps to the host's memory and
// back, beside compute (program.h says when the device's memory is free).
#ifndef PIPELAB_PIPELINES_IR_SCHEDULE_H_
#define PIPELAB_PIPELINES_IR_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipelines/ir/flow.h"

namespace pipelab {

enum class ActionKind : uint8_t {
  kForward,         // F
  kBackward,        // B: input and weight gradients
  kBackwardInput,   // I
  kBackwardWeight,  // W
  kRecompute,       // R: rebuilds what the forward dropped, for the backward
  kStep,  // S: optimizer step of a stage, only in asynchronous schedules (Lower adds it elsewhere)
  kOffload,  // O: what the forward keeps begins to go to the host
  kReload,   // L: and back, for the backward
};
inline constexpr int kNumActionKinds = 8;
// Not a pass of the stage: the host link works beside compute.
inline bool IsHostTransfer(ActionKind kind) { return kind >= ActionKind::kOffload; }

char KindLetter(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kForward;
  int16_t stage = 0;
  int32_t micro_batch = 0;  // of the stage's (Schedule::micro_batches_of_stage); 0 for kStep
  int16_t slice = 0;        // token slice of the micro-batch (TeraPipe); 0 where there is one
  // Weight version that it computes with; for kStep: the version it produces (versions.h).
  int16_t version = 0;

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.stage == b.stage && a.micro_batch == b.micro_batch &&
           a.slice == b.slice && a.version == b.version;
  }
  friend bool operator!=(const Action& a, const Action& b) { return !(a == b); }
};

// "2F5"; with slices "2F5.1"; with a version "2F5@3"; a step of stage 2 to version 3 "2S@3".
std::string ToString(const Action& action);

// Stages as a DAG; a chain in sequential pipelines. An edge carries an activation forward and its
// gradient back, each to the passes that its reads say (flow.h).
struct StageGraph {
  struct Edge {
    int from = 0, to = 0;
    Reads gradient = {};  // by the backwards of `from`
    Reads output = {};    // by the forwards of `to`
  };
  std::vector<std::vector<int>> in_edges;   // [stage] -> edge ids, ordered
  std::vector<std::vector<int>> out_edges;  // [stage] -> edge ids, ordered
  std::vector<Edge> edges;

  static StageGraph Chain(int num_stages);
  static StageGraph FromEdges(int num_stages, std::vector<Edge> edges);
  // These edges, and behind them one from each stage to the next that has none: what orders stages
  // as a sequential pipeline does and carries nothing.
  StageGraph WithChain() const;
  int num_stages() const { return static_cast<int>(in_edges.size()); }
  // Whether it has the edges of Chain(num_stages()), whatever they read.
  bool IsChain() const;
  // Whether all edges of the chain read their own samples, or replay.
  bool IsPlainChain() const;
  // Whether each edge's gradient has the samples of the pass that reads it.
  bool AllGradientsAreOwn() const;
  // How many outputs a pass chooses from (Reads::kReplay); 0: no edge replays.
  int ReplayWindow() const;
  // Lets all edges replay.
  void SetReplayWindow(int window);
  // The edges whose outputs go to passes with the same samples, in their order.
  StageGraph WithinMicroBatch() const;
  // Whether the stage takes nothing of its micro-batch from another.
  bool IsFirst(int stage) const;
  // Each stage after those with an edge within a micro-batch to it; shorter than num_stages() where
  // there is a cycle.
  std::vector<int> TopologicalOrder() const;
};

// Where a stage of a replica lives. Several devices in a group share its micro-batches by rows
// (data parallelism inside a stage); most schemes have groups of one.
struct Placement {
  int num_devices = 0;
  // [replica][stage] -> devices, in row order.
  std::vector<std::vector<std::vector<int>>> groups;
  // [smallest micro-batch] -> replica whose stages compute it. Bidirectional schemes have two or
  // more.
  std::vector<int> replica_of_micro_batch;

  int num_replicas() const { return static_cast<int>(groups.size()); }
  // One replica, stage s on device `device_of_stage[s]`.
  static Placement Single(absl::Span<const int> device_of_stage, int num_devices,
                          int num_micro_batches);
};

struct Schedule {
  std::string name;
  StageGraph stages;
  Placement placement;
  int num_micro_batches = 0;  // over all replicas, at the stages that run the most
  // [stage] -> micro-batches that it runs in a step, where some stages run fewer and larger ones
  // (GraphPipe); empty: num_micro_batches each. Each count divides the largest, which is
  // num_micro_batches, and across an edge one divides the other. Micro-batch m of a stage has the
  // samples of the smallest ones [m * size, (m + 1) * size), size = MicroBatchSize(stage). Where
  // stages replay, these are numbers of passes of one size, and any numbers.
  std::vector<int32_t> micro_batches_of_stage;
  int num_slices = 1;
  std::vector<std::vector<Action>> order;  // [device]
  // Inference: every action is a forward, which keeps nothing, and weights are all the state there
  // is. No edge brings gradients, whatever it says.
  bool forward_only = false;
  // [stage] 1: it prepares what another stage trains on (samples, gathers, moves): forwards alone,
  // which keep nothing, no parameters, and edges that bring no gradients. Replicas are then workers
  // that take micro-batches in turn: the stages that are trained have the same devices in all of
  // them, and one copy of their parameters there (IsOneCopy). Empty: none (Kaler et al., "SALIENT",
  // MLSys 2022).
  std::vector<uint8_t> prepares;
  // The scheme sums a stage's gradients as soon as its last one is there, beside the backwards of
  // other stages, and not at the end: what Lower does unless it is told otherwise.
  bool eager_reductions = false;
  // Each replica is a device with all stages, as many stages as devices, and it is the weights that
  // go from device to device, round a ring, and their gradients behind them (weight_ring.h).
  bool weights_travel = false;
  // Where weights travel: so many devices that follow one another, as in a node, run the same turn
  // and share what comes to one of them. 1: a ring of devices.
  int weight_group = 1;
  // A forward and the backward of another micro-batch that directly follows it are one pass in
  // which the experts' exchanges of each run beside the compute of the other (ir/atomic_pairs.h).
  bool merges_passes = false;
  // [micro-batch] The earlier micro-batch whose output it reads along edges with Reads::List(), as
  // tokens in decoding; -1: none. No two read the same, and both are of one replica. Micro-batches
  // are then passes of a decoding, or batches that are prepared, of costs and shapes of their own,
  // which each stage runs in their order. Such an edge to a stage that prepares limits how far it
  // runs ahead.
  PassList carried;

  int num_stages() const { return stages.num_stages(); }
  int num_devices() const { return placement.num_devices; }
  bool Prepares(int stage) const { return !prepares.empty() && prepares[stage] != 0; }
  // Whether all replicas have the same copy of the stage's parameters; replica 0 answers for it.
  bool IsOneCopy(int stage) const { return !prepares.empty() && prepares[stage] == 0; }
  bool HasForwardsAlone(int stage) const { return forward_only || Prepares(stage); }
  int MicroBatches(int stage) const {
    return micro_batches_of_stage.empty() ? num_micro_batches : micro_batches_of_stage[stage];
  }
  // In smallest micro-batches: 1 where all stages run the same.
  int MicroBatchSize(int stage) const {
    if (micro_batches_of_stage.empty() || ReplaysAt(stage)) return 1;
    return num_micro_batches / micro_batches_of_stage[stage];
  }
  // Devices that share each of the stage's micro-batches; where replicas differ, the fewest.
  int GroupSize(int stage) const;
  // Which passes of `e.to` read which outputs of `e.from`, and which passes of `e.from` read which
  // gradients of `e.to`.
  PassMap Outputs(const StageGraph::Edge& e) const {
    return PassMap(e.output, e.to, MicroBatches(e.from), MicroBatches(e.to), &carried);
  }
  PassMap Gradients(const StageGraph::Edge& e) const {
    return PassMap(forward_only ? Reads::None() : e.gradient, e.from, MicroBatches(e.to),
                   MicroBatches(e.from), &carried);
  }
  // `micro_batch` is one of the stage, in the stage's own numbers.
  int ReplicaOf(int stage, int micro_batch) const {
    return placement.replica_of_micro_batch[micro_batch * MicroBatchSize(stage)];
  }
  const std::vector<int>& Group(int stage, int micro_batch) const {
    return placement.groups[ReplicaOf(stage, micro_batch)][stage];
  }
  // What costs and tensors differ by: a micro-batch's token slices, or all passes.
  int NumShapes() const { return carried.empty() ? num_slices : num_micro_batches; }
  int ShapeOf(int micro_batch, int slice) const { return carried.empty() ? slice : micro_batch; }
  // Whether stages run different numbers of passes of one size.
  bool HasUnequalPasses() const {
    return !micro_batches_of_stage.empty() && stages.ReplayWindow() > 0;
  }
  // Whether the stage's edges replay: all of them, or none.
  bool ReplaysAt(int stage) const {
    const std::vector<int>& in = stages.in_edges[stage];
    const std::vector<int>& edges = in.empty() ? stages.out_edges[stage] : in;
    return !edges.empty() && stages.edges[edges[0]].output.replay();
  }
  // The micro-batch of the step whose samples the stage's pass has, through the chain of sources.
  int SampleOf(int stage, int pass) const;
  // [stage] Whether backward passes rebuild its activations (some R of it is in the order).
  std::vector<bool> RecomputedStages() const;
};

// The same order over another graph of as many stages, as a partition of a model makes it. An order
// over a chain serves every graph whose edges lead to later stages, since it orders all of them; of
// another graph the edges must be the same. An edge's gradient is as late as the schedule's edges
// between its ends are together, and none where one of them, or the given edge, has none. It
// replays as the schedule's edges do, and edges that lead to other micro-batches are the schedule's
// own. InvalidArgument names the edge.
absl::StatusOr<Schedule> WithStages(Schedule schedule, StageGraph stages);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SCHEDULE_H_
