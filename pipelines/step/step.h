// One training step: a model, cut into stages, under a scheme, on a cluster. Every command, study,
// search and training gets its step here, so that a configuration has one price.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto on, ModelOnCluster::Load("gpt-6.6b", "dgx-a100", "bf16"));
//   PIPELAB_ASSIGN_OR_RETURN(StepConfig config, ParseStepConfig("", "1f1b:P=4,T=2,D=8,M=16"));
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(on->step(), config));
//   p.step_time;  p.bubble;  p.largest_device;  p.fits;
//
// A step is whole: fill and drain, messages and collectives over the cluster's links, the sums of
// gradients, the optimizer. Ranks that differ only in d or t do the same, so the program has one
// device for all t and two for all d (Program::devices_per_member), or four where sets of d share
// and there is no pipeline.
//
// Plans bring their own partition and schedule and begin at AssembleStep. Trainings build the step
// of their configuration with a device for every copy (StepModel::fold_data).
#ifndef PIPELAB_PIPELINES_STEP_STEP_H_
#define PIPELAB_PIPELINES_STEP_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

struct Step {
  StepConfig config;
  ModelPartition partition;
  // What is cut, where it is not the model's graph: with the heads of stages that learn locally, or
  // with a divided vocabulary.
  absl::optional<ModelGraph> own_graph;
  Program program;
  CostTable costs;
  std::vector<int64_t> slices;  // tokens of each slice; empty: whole samples
  int members = 1;              // devices of the program for each pipeline device
  Flops model_flops;            // products of forward and backward, recomputation not counted
  Bytes device_memory;          // of a device of the cluster; 0: no cluster
  Nanoseconds set_up;           // before the program, on all devices (DeviceSpec::step_set_up)
};

// A rank of the pipeline device; all D * T of them are alike.
struct DevicePrediction {
  Bytes memory;  // the most at a time
  Bytes peak_activation, peak_state;
  Bytes sent, collective, tensor;  // in messages, data-parallel and tensor-parallel collectives
  double bubble = 0;               // 0 to 1
  int peak_in_flight = 0;
};

struct StepPrediction {
  Step step;
  Trace trace;
  Nanoseconds step_time;  // the set-up and the trace's makespan
  double bubble = 0;      // analysis.h: the share of the devices' time without compute, 0 to 1
  Bytes largest_device;   // state and activations, the most at a time
  bool fits = true;       // in a device's memory
  double tflops_per_device = 0;           // of the model's products
  std::vector<DevicePrediction> devices;  // [pipeline device]

  double samples_per_second() const;
};

// InvalidArgument naming the key and what would be right: more devices than the cluster has, sizes
// that the scheme refuses, more stages than the model has blocks. NotFound for what the device
// lacks.
absl::StatusOr<Step> BuildStep(const StepModel& model, const StepConfig& config);
// The same; many configurations of one model share the cache.
absl::StatusOr<Step> BuildStep(StepCache* cache, const StepConfig& config);

// A step of parts at hand, such as a plan's. Pointers are not kept.
struct StepParts {
  const StepModel* model = nullptr;
  const ModelPartition* partition = nullptr;
  Schedule schedule;
  // The grid, and how the step is run. The schedule has `members` devices for each of P.
  StepConfig config;
  int members = 1;
  // Samples of the program's smallest micro-batches, over their group: C times their samples.
  int64_t micro_batch_size = 1;
  std::vector<int64_t> slices;  // tokens of each slice; empty: whole samples
  LoweringOptions lowering;     // LoweringOf(config), and what no configuration says
  // The costs of one copy, where they are known (StepCache).
  const CostTable* costs = nullptr;
};
absl::StatusOr<Step> AssembleStep(StepParts parts);
LoweringOptions LoweringOf(const StepConfig& config);

// Times and memory without spans: what a search compares. The memory alone if a device needs more
// than `limit` and that is known without a simulation.
absl::StatusOr<StepPrediction> SimulateStep(Step step, absl::optional<Bytes> limit = absl::nullopt);
// And all figures.
absl::StatusOr<StepPrediction> Predict(Step step);
absl::StatusOr<StepPrediction> PredictStep(const StepModel& model, const StepConfig& config);
absl::StatusOr<StepPrediction> PredictStep(StepCache* cache, const StepConfig& config);

// Tokens of each of the schedule's slices: `lengths`, or as equal as can be, the first ones longer,
// where the devices of the split have whole tokens of each. None for whole samples.
absl::StatusOr<std::vector<int64_t>> ChooseSlices(const ModelGraph& graph, const Schedule& schedule,
                                                  const std::vector<int64_t>& lengths,
                                                  TensorParallel split);

// InvalidArgument naming b where a step's time or bytes would not fit 63 bits.
absl::Status CheckCountable(const StepModel& model, int64_t micro_batch_size,
                            int64_t micro_batches);

// Devices of the program for each pipeline device: two stand for all copies where all are alike.
// Of sets of shards without a pipeline, two stand for each set and two for all sets.
int MembersOf(const StepModel& model, const StepConfig& config);
// The message of the largest edge; 0 without edges.
Bytes LargestMessage(const CostTable& costs);
// Where its ranks are, `members` of them for each pipeline device. The message is one member's.
RankGrid GridOfStep(const StepModel& model, const StepConfig& config, int members,
                    Bytes largest_message);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_H_
