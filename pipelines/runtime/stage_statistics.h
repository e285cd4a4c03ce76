// What the layers of one stage carry from step to step besides parameters: running statistics of
// batch normalisation (LayerSpec::statistics). Each copy of a stage has its own, whole even where
// parameters are sharded, and of its own micro-batches.
//
//   StageStatistics s(graph, /*layers=*/{3, 4, 5}, backend);
//   layer->SetStatistics(s.OfLayer(4));
//   s.Copy("cell1/reduce1/running_mean");
#ifndef PIPELAB_PIPELINES_RUNTIME_STAGE_STATISTICS_H_
#define PIPELAB_PIPELINES_RUNTIME_STAGE_STATISTICS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

class StageStatistics {
 public:
  // `layers` count in the graph. `backend` must outlive this.
  StageStatistics(const ModelGraph& graph, absl::Span<const int> layers, Backend* backend);

  // In the order of LayerSpec::statistics.
  const std::vector<Tensor>& OfLayer(int layer) const { return of_layer_.at(layer); }

  // By name, for tests and checkpoints; NotFound, and InvalidArgument for another number of
  // elements.
  absl::StatusOr<std::vector<float>> Copy(absl::string_view name) const;
  absl::Status Set(absl::string_view name, absl::Span<const float> values);

 private:
  absl::StatusOr<Tensor> Find(absl::string_view name) const;

  std::map<int, std::vector<Tensor>> of_layer_;
  std::map<std::string, Tensor, std::less<>> of_name_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STAGE_STATISTICS_H_
