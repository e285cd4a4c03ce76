#include "models/zoo/branch_stages.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

absl::Status Refuse(const LayerSpec& layer, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("parallel stages: layer \"", layer.name, "\" ", why));
}

// First layers of the branches, and of the join.
absl::StatusOr<std::vector<int>> StartsOf(const ModelGraph& graph) {
  std::vector<int> starts;
  const int n = static_cast<int>(graph.layers.size());
  int i = 0;
  for (; i < n && graph.layers[i].inputs.size() < 2; ++i) {
    const std::vector<int>& inputs = graph.layers[i].inputs;
    if (inputs.empty()) starts.push_back(i);
    if (!inputs.empty() && inputs[0] != i - 1) {
      return Refuse(graph.layers[i], "takes another layer than the one before, so no branch");
    }
  }
  starts.push_back(i);
  for (; i < n; ++i) {
    if (graph.layers[i].inputs.empty()) return Refuse(graph.layers[i], "starts behind the join");
  }
  return starts;
}

}  // namespace

absl::StatusOr<std::vector<int>> BranchStages(const ModelGraph& graph, int stages_of_branch) {
  if (stages_of_branch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("parallel stages: ", stages_of_branch, " stages of a branch"));
  }
  const absl::StatusOr<std::vector<int>> starts = StartsOf(graph);
  if (!starts.ok()) return starts.status();
  const int branches = static_cast<int>(starts->size()) - 1;
  std::vector<int> stage_of_layer(graph.layers.size());
  int stage = 0;
  for (int part = 0; part < stages_of_branch; ++part) {
    for (int b = 0; b < branches; ++b) {
      const int layers = (*starts)[b + 1] - (*starts)[b],
                parts = std::min(layers, stages_of_branch);
      if (part >= parts) continue;
      for (int i = 0; i < layers; ++i) {
        if (i * parts / layers == part) stage_of_layer[(*starts)[b] + i] = stage;
      }
      ++stage;
    }
  }
  std::fill(stage_of_layer.begin() + starts->back(), stage_of_layer.end(), stage);
  return stage_of_layer;
}

}  // namespace pipelab
