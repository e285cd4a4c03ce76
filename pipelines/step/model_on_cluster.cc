#include "pipelines/step/model_on_cluster.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/files/model_file.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {

std::unique_ptr<ModelOnCluster> ModelOnCluster::Of(ModelGraph graph,
                                                   absl::optional<ClusterSpec> cluster,
                                                   NumberType type) {
  auto on = std::unique_ptr<ModelOnCluster>(new ModelOnCluster());
  on->model_ = GroupByName(std::move(graph));
  on->cluster_ = std::move(cluster);
  on->step_.model = &on->model_;
  if (on->cluster_.has_value()) {
    on->step_.cluster = &*on->cluster_;
  } else {
    on->step_.step_flops_per_parameter = 0;  // measured times have no optimizer's beside them
  }
  on->step_.type = type;
  return on;
}

absl::StatusOr<std::unique_ptr<ModelOnCluster>> ModelOnCluster::Load(const std::string& model,
                                                                     const std::string& cluster,
                                                                     const std::string& dtype) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", model, ModelFileOptions()));
  absl::optional<ClusterSpec> machine;
  NumberType type = NumberType::kFp32;
  if (!cluster.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(machine, LoadCluster("--cluster", cluster));
    type = NarrowestType(machine->device);
  }
  if (!dtype.empty()) {
    const absl::StatusOr<NumberType> found = FindNumberType(dtype);
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dtype=", dtype, ": ", found.status().message()));
    }
    type = *found;
  }
  return Of(std::move(graph), std::move(machine), type);
}

}  // namespace pipelab
