#include "pipelines/cost/model_partition.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/specs/further_token_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckStages(const ModelGraph& graph, const std::vector<int>& stage_of_layer) {
  const int layers = static_cast<int>(graph.layers.size());
  if (static_cast<int>(stage_of_layer.size()) != layers) {
    return Invalid("a partition names the stage of each of the ", layers, " layers, not of ",
                   stage_of_layer.size());
  }
  for (int i = 0; i < layers; ++i) {
    const LayerSpec& layer = graph.layers[i];
    if (stage_of_layer[i] < 0 || stage_of_layer[i] >= layers) {
      return Invalid("layer \"", layer.name, "\" is in stage ", stage_of_layer[i], "; ", layers,
                     " layers have stages from 0 to at most ", layers - 1);
    }
    for (int input : layer.inputs) {
      if (stage_of_layer[input] <= stage_of_layer[i]) continue;
      return Invalid("layer \"", layer.name, "\" is in stage ", stage_of_layer[i], " and takes \"",
                     graph.layers[input].name, "\" of stage ", stage_of_layer[input],
                     ": stages are numbered along the edges");
    }
  }
  const int stages = 1 + *std::max_element(stage_of_layer.begin(), stage_of_layer.end());
  std::vector<bool> has_layers(stages);
  for (int stage : stage_of_layer) has_layers[stage] = true;
  for (int stage = 0; stage < stages; ++stage) {
    if (!has_layers[stage]) {
      return Invalid("stage ", stage, " of ", stages, " has no layers");
    }
  }
  return absl::OkStatus();
}

// The sequence in which the consumers' gradients come together: a sum within brackets where several
// of one other stage are added up first.
std::vector<std::vector<int>> Terms(const ModelPartition& p, int layer,
                                    const std::vector<int>& consumers) {
  std::map<int, std::vector<int>, std::greater<int>> others;
  std::vector<std::vector<int>> own;
  for (auto c = consumers.rbegin(); c != consumers.rend(); ++c) {
    const int stage = p.stage_of_layer[*c];
    if (stage == p.stage_of_layer[layer]) {
      own.push_back({*c});
    } else {
      others[stage].push_back(*c);
    }
  }
  std::vector<std::vector<int>> terms;
  for (auto& [stage, sum] : others) terms.push_back(std::move(sum));
  terms.insert(terms.end(), own.begin(), own.end());
  return terms;
}

}  // namespace

absl::StatusOr<ModelPartition> MakePartition(const ModelGraph& graph,
                                             std::vector<int> stage_of_layer) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckStages(graph, stage_of_layer));
  ModelPartition p;
  p.stage_of_layer = std::move(stage_of_layer);
  const int stages = 1 + *std::max_element(p.stage_of_layer.begin(), p.stage_of_layer.end());
  p.layers.resize(stages);
  p.loss_stage = p.stage_of_layer[LossLayer(graph)];
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  const std::vector<std::vector<int>> sources = GradientSources(graph);
  std::vector<StageGraph::Edge> edges;
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const int from = p.stage_of_layer[i];
    p.layers[from].push_back(i);
    std::set<int> to, back;
    const auto add_other = [&](int layer, std::set<int>* stages) {
      if (p.stage_of_layer[layer] != from) stages->insert(p.stage_of_layer[layer]);
    };
    for (int consumer : consumers[i]) add_other(consumer, &to);
    for (int source : sources[i]) add_other(source, &back);
    for (int stage : to) {
      edges.push_back({from, stage, back.count(stage) > 0 ? Reads() : Reads::None()});
      p.edge_layer.push_back(i);
    }
  }
  p.stages = StageGraph::FromEdges(stages, std::move(edges));
  return p;
}

absl::StatusOr<ModelPartition> MakeRangePartition(const ModelGraph& graph,
                                                  absl::Span<const int> first_layers) {
  const int layers = static_cast<int>(graph.layers.size());
  if (first_layers.empty() || first_layers[0] != 0) {
    return Invalid("a partition begins with layer 0");
  }
  std::vector<int> stage_of_layer;
  for (size_t s = 0; s < first_layers.size(); ++s) {
    const int end = s + 1 < first_layers.size() ? first_layers[s + 1] : layers;
    if (first_layers[s] >= end || end > layers) {
      return Invalid("stage ", s, " has no layers: it begins with layer ", first_layers[s],
                     ", the next begins with ", end, " of ", layers);
    }
    stage_of_layer.resize(end, static_cast<int>(s));
  }
  return MakePartition(graph, std::move(stage_of_layer));
}

absl::StatusOr<ModelPartition> MakeStageOfRange(const ModelGraph& graph, int begin, int end,
                                                int* stage) {
  const int layers = static_cast<int>(graph.layers.size());
  if (begin < 0 || end > layers || begin >= end) {
    return Invalid("a stage of the layers [", begin, ", ", end, ") of ", layers);
  }
  std::vector<int> first_layers = {0};
  if (begin > 0) first_layers.push_back(begin);
  if (end < layers) first_layers.push_back(end);
  *stage = begin > 0 ? 1 : 0;
  return MakeRangePartition(graph, first_layers);
}

std::vector<int> RebuiltBlocks(const ModelGraph& graph, std::vector<int> block_of_layer) {
  std::set<int> kept;
  for (size_t i = 0; i < block_of_layer.size(); ++i) {
    const LayerSpec& layer = graph.layers[i];
    if (layer.inputs.empty() || layer.output_shape.empty()) kept.insert(block_of_layer[i]);
  }
  int further = *std::max_element(block_of_layer.begin(), block_of_layer.end());
  for (size_t i = 0; i < block_of_layer.size(); ++i) {
    if (kept.count(block_of_layer[i]) > 0) block_of_layer[i] = -1;
    // Heads for further tokens are in the loss's group, and their blocks are rebuilt all the same.
    const LayerSpec& layer = graph.layers[i];
    if (layer.kind == kFurtherToken) ++further;
    const bool of_head = absl::StartsWith(layer.name, kFurtherTokens);
    if (of_head && !layer.output_shape.empty()) block_of_layer[i] = further;
  }
  return block_of_layer;
}

std::vector<bool> HeadLayers(const ModelGraph& graph) {
  std::vector<bool> head(graph.layers.size(), false);
  for (int i = static_cast<int>(graph.layers.size()) - 1; i >= 0; --i) {
    const LayerSpec& layer = graph.layers[i];
    head[i] = head[i] || layer.output_shape.empty();
    if (!head[i] || !layer.parameters.empty()) continue;
    for (const int input : layer.inputs) head[input] = true;
  }
  return head;
}

void RebuildPart(const RebuiltPart& part, int devices, ModelPartition* partition) {
  if (partition->block_of_layer.empty()) return;
  std::vector<int> seen(devices);  // blocks of a device
  for (int stage = 0; stage < partition->num_stages(); ++stage) {
    int rebuilt = 0, before = -1, group = -1;
    bool taken = false;
    for (int layer : partition->layers[stage]) {
      int& block = partition->block_of_layer[layer];
      if (block < 0) continue;
      if (block != before) {
        before = block;
        taken =
            ++seen[stage % devices] % part.every == 0 && (part.first == 0 || rebuilt < part.first);
        if (taken && rebuilt++ % part.together == 0) group = block;
      }
      block = taken ? group : -1;
    }
  }
}

std::vector<Tie> StageTies(const ModelGraph& graph, const ModelPartition& partition) {
  std::map<std::string, std::set<int>> stages;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!p.tie.empty()) stages[p.tie].insert(partition.stage_of_layer[i]);
    }
  }
  std::vector<Tie> ties;
  for (const auto& [name, of] : stages) {
    if (of.size() > 1) ties.push_back({name, std::vector<int>(of.begin(), of.end())});
  }
  return ties;
}

int64_t NumParameterValues(const ModelGraph& graph) {
  std::set<std::string> values;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) values.insert(ValueName(p));
  }
  return static_cast<int64_t>(values.size());
}

bool SumsInLayerOrder(const ModelGraph& graph, const ModelPartition& partition) {
  const std::vector<std::vector<int>> consumers = GradientSources(graph);
  for (size_t i = 0; i < consumers.size(); ++i) {
    if (consumers[i].size() < 3) continue;  // a sum of two commutes
    int before = static_cast<int>(graph.layers.size());
    bool first = true;
    for (const std::vector<int>& term : Terms(partition, static_cast<int>(i), consumers[i])) {
      if (!first && term.size() > 1) return false;
      first = false;
      for (int consumer : term) {
        if (consumer > before) return false;
        before = consumer;
      }
    }
  }
  return true;
}

}  // namespace pipelab
