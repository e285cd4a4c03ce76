// A model and a machine by their names or files.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto on, ModelOnCluster::Load("gpt-6.6b", "dgx-a100", "bf16"));
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(on->step(), config));   // step.h
#ifndef PIPELAB_PIPELINES_STEP_MODEL_ON_CLUSTER_H_
#define PIPELAB_PIPELINES_STEP_MODEL_ON_CLUSTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// Kept for as long as a step needs them.
class ModelOnCluster {
 public:
  // `cluster` may be empty where all layers were measured; `dtype` empty is the narrowest of the
  // cluster. InvalidArgument naming the option: --model, --cluster, --dtype.
  static absl::StatusOr<std::unique_ptr<ModelOnCluster>> Load(const std::string& model,
                                                              const std::string& cluster,
                                                              const std::string& dtype = "");
  // Makes one from a graph and a cluster at hand.
  static std::unique_ptr<ModelOnCluster> Of(ModelGraph graph, absl::optional<ClusterSpec> cluster,
                                            NumberType type);

  const StepModel& step() const { return step_; }
  const GroupedModel& model() const { return model_; }

 private:
  ModelOnCluster() = default;

  GroupedModel model_;
  absl::optional<ClusterSpec> cluster_;
  StepModel step_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_MODEL_ON_CLUSTER_H_
