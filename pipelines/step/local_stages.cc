#include "pipelines/step/local_stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool BringsGradient(const StageGraph::Edge& e) { return !e.gradient.none(); }

// Takes values of the model's layers to those of the model with heads; the heads have -1.
std::vector<int> Moved(const std::vector<int>& of_layer, const std::vector<int>& layer_of) {
  std::vector<int> moved;
  for (int layer : layer_of) {
    if (!of_layer.empty()) moved.push_back(layer < 0 ? -1 : of_layer[layer]);
  }
  return moved;
}

}  // namespace

bool LearnsLocally(const Schedule& schedule) {
  const StageGraph& graph = schedule.stages;
  const auto brings = [&graph](int e) { return BringsGradient(graph.edges[e]); };
  return !schedule.forward_only &&
         std::any_of(graph.out_edges.begin(), graph.out_edges.end(), [&](const auto& edges) {
           return !edges.empty() && std::none_of(edges.begin(), edges.end(), brings);
         });
}

absl::Status LearnsLocallyError(const absl::Status& error) {
  return absl::InvalidArgumentError(absl::StrCat("stages that learn locally: ", error.message()));
}

absl::StatusOr<absl::optional<LocalStages>> LocalStagesOf(const GroupedModel& model,
                                                          const ModelPartition& partition,
                                                          LocalHead kind) {
  const std::vector<StageGraph::Edge>& edges = partition.stages.edges;
  if (std::none_of(edges.begin(), edges.end(), BringsGradient)) {
    return absl::optional<LocalStages>();
  }
  std::vector<int> cuts;
  for (size_t i = 1; i < partition.stage_of_layer.size(); ++i) {
    if (partition.stage_of_layer[i] == partition.stage_of_layer[i - 1]) continue;
    if (partition.stage_of_layer[i] < partition.stage_of_layer[i - 1]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "stages that learn locally are ranges of layers, and layer \"",
          model.graph.layers[i].name, "\" goes back to stage ", partition.stage_of_layer[i]));
    }
    cuts.push_back(static_cast<int>(i));
  }
  absl::StatusOr<LocalModel> made = WithLocalHeads(model.graph, cuts, kind);
  if (!made.ok()) return LearnsLocallyError(made.status());
  LocalModel& local = *made;
  LocalStages stages;
  PIPELAB_ASSIGN_OR_RETURN(stages.partition, MakePartition(local.graph, local.stage_of_layer));
  stages.partition.block_of_layer = Moved(partition.block_of_layer, local.layer_of);
  if (!partition.unsplit.empty()) stages.partition.unsplit = HeadLayers(local.graph);
  stages.model.graph = std::move(local.graph);
  stages.model.group_of_layer = Moved(model.group_of_layer, local.layer_of);
  std::vector<int>& groups = stages.model.group_of_layer;
  for (size_t i = 1; i < groups.size(); ++i) groups[i] = std::max(groups[i], groups[i - 1]);
  return absl::optional<LocalStages>(std::move(stages));
}

}  // namespace pipelab
