#include "pipelines/runtime/stage_statistics.h"

#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/initialize.h"
#include "tools/base/status_macros.h"

namespace pipelab {

StageStatistics::StageStatistics(const ModelGraph& graph, absl::Span<const int> layers,
                                 Backend* backend) {
  for (int layer : layers) {
    std::vector<Tensor>& tensors = of_layer_[layer];
    for (const ParameterSpec& spec : graph.layers[layer].statistics) {
      const Shape shape(spec.shape.begin(), spec.shape.end());
      tensors.push_back(
          backend->arena().Allocate(DataType::kFloat32, shape, MemoryKind::kParameter));
      InitializeTensor(spec, /*seed=*/0, tensors.back());  // none starts by chance
      of_name_[spec.name] = tensors.back();
    }
  }
}

absl::StatusOr<Tensor> StageStatistics::Find(absl::string_view name) const {
  const auto it = of_name_.find(name);
  if (it != of_name_.end()) return it->second;
  return absl::NotFoundError(absl::StrCat("this stage has no statistics \"", name, "\""));
}

absl::StatusOr<std::vector<float>> StageStatistics::Copy(absl::string_view name) const {
  PIPELAB_ASSIGN_OR_RETURN(const Tensor found, Find(name));
  return HostValues(found);
}

absl::Status StageStatistics::Set(absl::string_view name, absl::Span<const float> values) {
  PIPELAB_ASSIGN_OR_RETURN(const Tensor found, Find(name));
  if (static_cast<int64_t>(values.size()) != found.size()) {
    return absl::InvalidArgumentError(absl::StrCat("statistics \"", name, "\" have ", found.size(),
                                                   " elements, not ", values.size()));
  }
  SetHostValues(found, values);
  return absl::OkStatus();
}

}  // namespace pipelab
