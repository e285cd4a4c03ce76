#include "pipelines/cost/stage_ties.h"

#include <map>
#include <set>
#include <string>

namespace pipelab {

LayerRange StageLayers(const ModelGraph& graph, absl::Span<const int> first_layers, int stage) {
  const bool last = stage + 1 == static_cast<int>(first_layers.size());
  return {first_layers[stage],
          last ? static_cast<int>(graph.layers.size()) : first_layers[stage + 1]};
}

std::vector<Tie> StageTies(const ModelGraph& graph, absl::Span<const int> first_layers) {
  std::map<std::string, std::set<int>> stages;
  for (int s = 0; s < static_cast<int>(first_layers.size()); ++s) {
    const LayerRange range = StageLayers(graph, first_layers, s);
    for (int i = range.begin; i < range.end; ++i) {
      for (const ParameterSpec& p : graph.layers[i].parameters) {
        if (!p.tie.empty()) stages[p.tie].insert(s);
      }
    }
  }
  std::vector<Tie> ties;
  for (const auto& [name, of] : stages) {
    if (of.size() > 1) ties.push_back({name, std::vector<int>(of.begin(), of.end())});
  }
  return ties;
}

}  // namespace pipelab
