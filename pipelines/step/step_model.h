// What all configurations of a step share: a model and the machine that it is to run on.
// model_on_cluster.h makes one of names.
#ifndef PIPELAB_PIPELINES_STEP_STEP_MODEL_H_
#define PIPELAB_PIPELINES_STEP_STEP_MODEL_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cost/layer_times.h"

namespace pipelab {

struct StepModel {
  const GroupedModel* model = nullptr;
  // Null: every layer was measured, or counts flops at a nominal rate; messages take no time.
  const ClusterSpec* cluster = nullptr;
  NumberType type = NumberType::kFp16;
  int optimizer_tensors = 2;             // that the optimizer keeps of each parameter: Adam's
  double step_flops_per_parameter = 13;  // of the optimizer, where there is no cluster: Adam's
  int64_t norm_values = 0;  // LoweringOptions::norm_values: of an optimizer that asks for the norm
  // Two devices of the program stand for all data-parallel copies. False: one for each copy, with
  // the same result in D / 2 times the work; what runs has them all.
  bool fold_data = true;
  // With a divided vocabulary (divided_vocabulary.h) so many layers in front of the chain, and one
  // more behind it, are units and stages of their own. 0: all of the model is the chain.
  int vocabulary_parts = 0;

  absl::optional<Machine> machine() const {
    if (cluster == nullptr) return absl::nullopt;
    return Machine{cluster->device, type};
  }
};

// The narrowest numbers that the device computes with: what large models are trained with.
NumberType NarrowestType(const DeviceSpec& device);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_MODEL_H_
