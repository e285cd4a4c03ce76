// What a planner plans: a DAG of operators, each with variants, and the machine.
//
//   PIPELAB_ASSIGN_OR_RETURN(PlanProblem p, PlanProblemOf(piper));      // plan_inputs.h
//   p.devices = 64;
//   PIPELAB_RETURN_IF_ERROR(FinishProblem(&p, "--piper_json=bert.json"));
//
// Everything is of one micro-batch (PipeDream: mini-batch of the profile). Times are in the unit
// that `time_unit` names, as the input has them: no rounding, so that objectives are those of the
// input's own planner. Bytes may have fractions for the same reason. Bandwidths are bytes a unit of
// time in effect: planners divide bytes by them and add the result to times (Piper's ResNet file
// mixes milliseconds and bytes a second, and is planned with that mix unless its unit is given).
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_PROBLEM_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipelab {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a plan's figure means; docs/planning.md has the formulas.
enum class PlanObjective : uint8_t {
  kStageTime,  // Piper: the longest stage, communication added
  kPipeDream,  // the longest stage, communication overlapped, per network level
  kMaxLoad,    // dnn-partitioning: the largest load of an accelerator or processor
  kVariance,   // GPipe: variance of the stages' compute times
  // GraphPipe: Piper's, but a stage's own micro-batch, and in flight what is on the longest path
  kGraphStageTime,
  // GraphPipe's plans by what a batch takes: the longest path through the stages, and the rest of
  // the batch at the pace of the slowest (plan_costs.h)
  kGraphBatchTime,
  // DAPPLE, BaPipe: of a batch with fill and drain (batch_time.h), transfers beside compute or not
  kBatchTime,
  kBatchTimeNoOverlap,
  kSliceTime,  // TeraPipe: of a batch in slices of samples and tokens (token_slicing.h)
};
const char* PlanObjectiveName(PlanObjective objective);  // "stage_time"
// Whether stages form a DAG, with micro-batches of their own.
bool IsGraphObjective(PlanObjective objective);

struct PlanTimes {
  double forward = 0, time = 0;  // time: forward and backward
};

// One way to run an operator on each device of a tensor-parallel group.
struct PlanVariant {
  std::string name;              // "vanilla"
  bool recompute = false;        // drops its activations and computes them again
  double time = 0;               // forward and backward
  double forward_time = 0;       // of that
  double parameter_bytes = 0;    // what data parallelism synchronises
  double in_flight_bytes = 0;    // of each micro-batch in flight
  double fixed_bytes = 0;        // besides
  std::vector<double> in_sync;   // bytes that tensor parallelism moves, by place in `in_edges`
  std::vector<double> out_sync;  // by place in `out_edges`
  // [size] Of a micro-batch of PlanProblem::micro_batch_sizes[size] on one device; empty: in
  // proportion.
  std::vector<PlanTimes> times;
};

struct PlanOperator {
  std::string id;                                    // the input's own
  std::string name;                                  // for people
  std::vector<int> layers;                           // of a model's graph (model_problem.h)
  std::map<int, std::vector<PlanVariant>> variants;  // by tensor-parallel degree; none is empty
  double output_bytes = 0;                           // all outputs together
  // [size of micro-batch][units of a slice - 1][units of the sample before it] Both passes of a
  // slice of tokens, run plainly, and what its forward is of that: PlanProblem::tokens.
  std::vector<std::vector<std::vector<PlanTimes>>> slice_times;
  // kMaxLoad only: time of its transfer to other devices, time on a processor, whether an
  // accelerator can run it; operators of one colour share a device, backwards are contiguous among
  // themselves.
  double transfer_time = 0, processor_time = 0;
  bool on_accelerator = true, is_backward = false;
  int colour = -1;  // -1: none

  std::vector<int> in_edges, out_edges;  // FinishProblem: indices of edges, ascending
};

struct PlanEdge {
  int from = 0, to = 0;  // indices of operators
  double bytes = 0;
};

struct PlanLevel {
  int64_t devices = 1;   // units of the level below in one of this level
  double bandwidth = 0;  // bytes a second
  double latency = 0;    // of a message
};

struct PlanProblem {
  std::string name;
  bool integer_ids = false;  // ids are numbers in the input
  std::vector<PlanOperator> operators;
  std::vector<PlanEdge> edges;  // without a cycle
  PlanObjective objective = PlanObjective::kStageTime;
  std::string time_unit = "s/microbatch";

  int64_t devices = 1;                                            // kMaxLoad: accelerators
  int64_t processors = 0;                                         // kMaxLoad only
  double memory_bytes = std::numeric_limits<double>::infinity();  // of a device
  double bandwidth = 0;                                           // flat: kStageTime
  // [device] How many times as fast it computes as the times say; empty: all as they say.
  std::vector<double> device_speeds;
  std::vector<PlanLevel> levels;  // kPipeDream: from the innermost; their product is `devices`
  double latency = 0;             // of a message; Piper and PipeDream have none
  int64_t micro_batches = 1;      // of a batch, over all copies of a stage
  // Samples of the micro-batch that all figures are of, and of a batch, for planners that choose
  // the size of micro-batches. Bytes of other sizes are in proportion, and so are times but for
  // those of PlanVariant::times. `micro_batch_sizes` ascend. `batch_samples` 0: it is
  // micro_batch_size * micro_batches.
  int64_t micro_batch_size = 1, batch_samples = 0;
  std::vector<int64_t> micro_batch_sizes;
  // Tokens of a sample, where it can be cut into slices of a multiple of `token_step`, which is
  // their unit; 0: it cannot. Sizes of micro-batches are `micro_batch_sizes`, or `micro_batch_size`
  // alone.
  int64_t tokens = 0, token_step = 1;

  int size() const { return static_cast<int>(operators.size()); }
};

// Fills the operators' edge lists and checks everything that a planner relies on: at least one
// operator, menus that are not empty, times and bytes from 0 and finite, ends of edges, no cycle,
// sync bytes of every edge (filled with 0 where a variant has none), devices, bandwidths above 0
// and micro-batches from 1, levels whose product is the devices.
// InvalidArgument, "WHAT: ...".
absl::Status FinishProblem(PlanProblem* problem, absl::string_view what);

int64_t BatchSamples(const PlanProblem& problem);
// What that is in the problem's micro-batches.
double BatchPieces(const PlanProblem& problem);

// The times of a micro-batch of so many samples on one device. Sizes between those that have times
// are on the straight line between these; smaller and larger ones are in proportion to the first
// and the last.
PlanTimes TimesOfSamples(const PlanProblem& problem, const PlanVariant& variant, double samples);

// Operators in topological order, otherwise as listed.
std::vector<int> TopologicalOrder(const PlanProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_PROBLEM_H_
