// A published run of a model of today (modern_rows.h) as a step of ours: model, configuration,
// machine; or why it is not one.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ModernStep step, StepOfRow(row, models, machines));
//   PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, Predict(step));
//   ToSeconds(p.step_time) / *row.Seconds() - 1;       // above 0: predicted too slow
//
// What a row does not print is assumed, the same for all rows of a system (docs/modern_models.md):
// 1F1B, interleaved where a device has several stages; sequence parallelism where T > 1; the
// optimizer's state split over data-parallel copies under Megatron-LM; messages of the pipeline
// that block; gradients reduced beside compute; attention fused; blocks spread evenly over stages,
// under nanotron as it cuts them (nanotron_stages.h); FSDP's weights gathered a block at a time.
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_PREDICTION_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_PREDICTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/modern/modern_rows.h"
#include "models/graph/layer_spec.h"
#include "models/specs/adapters.h"
#include "models/specs/launched_kernels.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct ModernStep {
  GptConfig model;
  StepConfig config;
  ClusterSpec cluster;
  NumberType type = NumberType::kBf16;
  int optimizer_tensors = 2;            // beside weights and gradients
  std::vector<std::string> recomputed;  // models/specs/recomputed_modules.h
  absl::optional<Adapters> adapters;    // none: all weights are trained
  bool eager = false;                   // WithEagerKernels, and WithExpertBiases, of
  bool expert_biases = false;           // models/specs/launched_kernels.h
  bool composer = false;                // WithComposerKernels
  LaunchedKernels kernels;
  LossImplementation loss = LossImplementation::kFused;
  // The row does not print its micro-batch, which is taken to be its system's default. Such rows
  // are judged by themselves.
  bool assumed = false;
  bool inferred = false;  // its recomputation, from the fact that it ran (modern_assumptions.h)
};

// Machines by the rows' name of the GPU: "H100", "A100-80GB", "A100-40GB".
struct ModernMachines {
  std::map<std::string, ClusterSpec> by_gpu;
  ClusterSpec nanotron;  // of its rows
};

// FailedPrecondition where the row cannot be a step of ours, with a reason that rows share:
// "precision NVFP4", "Mamba layers".
absl::StatusOr<ModernStep> StepOfRow(const ModernRow& row, const std::vector<ModernModel>& models,
                                     const ModernMachines& machines);

// A step's model as it is computed: one serves many prices of its machine.
class ModernStepModel {
 public:
  static absl::StatusOr<ModernStepModel> Of(const ModernStep& step);

  // A step of the model, which must outlive it, as must `step`. That may have another cluster than
  // the one that the model was made of.
  StepModel On(const ModernStep& step) const;
  absl::StatusOr<StepPrediction> Predict(const ModernStep& step) const;

 private:
  ModelGraph trained_;  // what adapters leave as it is; empty without them
  GroupedModel model_;
};

absl::StatusOr<StepPrediction> Predict(const ModernStep& step);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_PREDICTION_H_
