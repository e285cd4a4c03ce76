// Where a model is cut into stages: the one place for every command, study and search.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<UnitTime> times, UnitTimes(model, config));
//   const std::vector<double> costs = UnitCosts(model, config, times, /*forward_only=*/false);
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> units,
//                            CutUnits(model, config, costs, /*stages=*/16));
//
// Stages are ranges of units. Rules (StepConfig::cut):
//   blocks          units are the model's blocks, and the longest stage is as short as can be, of
//                   forward, backward and recompute on the machine
//   layers          the same, between any two layers
//   flops_variance  the variance of the stages' flops is least, between blocks: GPipe's own
//                   partitioner (Huang et al. 2019, section 2.1)
//   memory          the largest stage's state and activations are least, between blocks
// A layout names the layers of each stage instead.
//
// In a model with a divided vocabulary (StepModel::vocabulary_parts) the chain is cut so, and each
// part is a stage.
//
// Stages that learn locally (scheme local) count with their heads, and each is cut so that all of
// its layers get a gradient.
//
// Without a cluster a layer takes what was measured, or its flops at a nominal rate.
#ifndef PIPELAB_PIPELINES_STEP_STAGE_CUT_H_
#define PIPELAB_PIPELINES_STEP_STAGE_CUT_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/zoo/local_heads.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"
#include "tools/base/units.h"

namespace pipelab {

// The ranks of one tensor-parallel group, innermost on the cluster, and those that divide experts.
TensorGroup TensorGroupOf(const StepModel& model, const StepConfig& config);
TensorGroup TensorGroupOf(const StepModel& model, const StepConfig& config,
                          const PathCost& expert_path);
// Between those that divide experts; the same for any C unless pipelines lie apart (ranks).
PathCost ExpertPathOf(const StepModel& model, const StepConfig& config);
// Makes it that of another configuration whose ranks are at the same places.
void TakeChoices(const StepModel& model, const StepConfig& config, TensorGroup* group);

// [layer] The unit that it is in, ascending from 0.
std::vector<int> UnitOfLayer(const GroupedModel& model, CutRule rule);

// [layer] The block that recompute=blocks rebuilds, -1 for none (RebuiltBlocks). Of a divided
// vocabulary nothing is rebuilt, as of a whole one.
std::vector<int> RebuiltBlocksOf(const StepModel& model);

// The times of one micro-batch on one rank of a tensor-parallel group.
struct UnitTime {
  Nanoseconds forward, backward_input, backward_weight, recompute;
};

// [unit]
absl::StatusOr<std::vector<UnitTime>> UnitTimes(const StepModel& model, const StepConfig& config);
// The same of layers' times that are known.
using TimesOfLayer = absl::FunctionRef<absl::StatusOr<const LayerTimes*>(int layer)>;
absl::StatusOr<std::vector<UnitTime>> UnitTimes(const StepModel& model, const StepConfig& config,
                                                TimesOfLayer times_of);

// What stages learn by, which says what their layers cost.
struct StageLearning {
  absl::optional<LocalHead> heads;  // of stages that learn locally
  bool forward_only = false;        // nothing: inference

  friend bool operator==(const StageLearning& a, const StageLearning& b) {
    return std::tie(a.heads, a.forward_only) == std::tie(b.heads, b.forward_only);
  }
  template <typename H>
  friend H AbslHashValue(H h, const StageLearning& learning) {
    return H::combine(std::move(h), learning.heads, learning.forward_only);
  }
};

// [unit] What the rule adds up to stages. `alike`: FirstAlike of the layers, if it is known.
std::vector<double> UnitCosts(const StepModel& model, const StepConfig& config,
                              const std::vector<UnitTime>& times, bool forward_only,
                              const std::vector<int>& alike = {});
// [stage] Its number of units. InvalidArgument where there are more stages than units, or some
// layer would get no gradient. `costs`: UnitCosts.
absl::StatusOr<std::vector<int>> CutUnits(const StepModel& model, const StepConfig& config,
                                          const std::vector<double>& costs, int stages,
                                          const StageLearning& learning = {});

// [layer] Its stage, of the units of each stage.
std::vector<int> StageOfLayer(const std::vector<int>& unit_of_layer,
                              const std::vector<int>& units_of_stage);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STAGE_CUT_H_
