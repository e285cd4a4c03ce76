#include "pipelines/cost/stage_memo.h"

#include <algorithm>
#include <map>
#include <string>

namespace pipelab {
namespace {

constexpr int kEnd = -1;  // behind a list

// Where a layer stands in a stage; -1: elsewhere.
int PlaceIn(const std::vector<int>& layers, int layer) {
  const auto at = std::lower_bound(layers.begin(), layers.end(), layer);
  return at == layers.end() || *at != layer ? -1 : static_cast<int>(at - layers.begin());
}

void AddInputs(const LayerSpec& layer, const std::vector<int>& layers,
               const std::map<int, int>& in_edge_of_layer, StageCostMemo::Key* key) {
  for (const int input : layer.inputs) {
    int from = PlaceIn(layers, input);
    if (from < 0) from = -2 - in_edge_of_layer.at(input);  // an edge brings it: below -1
    key->push_back(from);
    if (!layer.detached.empty()) key->push_back(IsDetached(layer, input) ? 1 : 0);
  }
  key->push_back(kEnd);
}

}  // namespace

StageCostMemo::StageCostMemo(const ModelGraph& graph, std::vector<int> alike)
    : alike_(std::move(alike)) {
  std::map<std::string, int> ties;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (p.tie.empty()) continue;
      const int number = static_cast<int>(ties.size());
      tied_.emplace_back(static_cast<int>(i), ties.emplace(p.tie, number).first->second);
    }
  }
}

StageCostMemo::Key StageCostMemo::KeyOf(const ModelGraph& graph, const ModelPartition& partition,
                                        int stage) const {
  const std::vector<int>& layers = partition.layers[stage];
  std::map<int, int> in_edge_of_layer;
  Key key;
  for (const int edge : partition.stages.in_edges[stage]) {
    in_edge_of_layer.emplace(partition.edge_layer[edge], static_cast<int>(key.size()));
    key.push_back(alike_[partition.edge_layer[edge]]);
  }
  key.push_back(kEnd);
  int before = -1;
  for (const int layer : layers) {
    key.push_back(alike_[layer]);
    AddInputs(graph.layers[layer], layers, in_edge_of_layer, &key);
    if (!partition.unsplit.empty()) key.push_back(partition.unsplit[layer] ? 1 : 0);
    if (partition.block_of_layer.empty()) continue;
    const int block = partition.block_of_layer[layer];
    key.push_back(block < 0 ? 0 : block == before ? 1 : 2);
    before = block;
  }
  key.push_back(kEnd);
  for (const int edge : partition.stages.out_edges[stage]) {
    key.push_back(PlaceIn(layers, partition.edge_layer[edge]));
    key.push_back(partition.stages.edges[edge].gradient.none() ? 1 : 0);
  }
  key.push_back(kEnd);
  for (const auto& [layer, tie] : tied_) {
    const int place = PlaceIn(layers, layer);
    if (place < 0) continue;
    const int number = tie;
    const bool elsewhere = std::any_of(tied_.begin(), tied_.end(), [&](const auto& other) {
      return other.second == number && partition.stage_of_layer[other.first] != stage;
    });
    key.insert(key.end(), {place, tie, elsewhere ? 1 : 0});
  }
  return key;
}

const StageCost* StageCostMemo::Find(const Key& key) const {
  const auto found = costs_.find(key);
  return found == costs_.end() ? nullptr : &found->second;
}

}  // namespace pipelab
