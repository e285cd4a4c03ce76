#include "pipelines/step/divided_vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/specs/megatron_kernels.h"

namespace pipelab {

absl::StatusOr<DividedVocabulary> DivideVocabulary(const GroupedModel& whole, const StepConfig& c) {
  DividedVocabulary divided;
  absl::StatusOr<ShardedVocabulary> made =
      ShardVocabulary(whole.graph, c.pipeline, c.vocabulary_barriers);
  if (!made.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("vocabulary_barriers=", c.vocabulary_barriers,
                                                   ", P=", c.pipeline, ": ",
                                                   made.status().message()));
  }
  divided.vocabulary = *std::move(made);
  if (const auto loss = LossImplementationOf(whole.graph)) {
    divided.vocabulary.graph =
        WithMegatronVocabularyParts(std::move(divided.vocabulary.graph), *loss);
  }
  divided.model.graph = divided.vocabulary.graph;
  const int parts = divided.parts();
  const int layers = static_cast<int>(divided.model.graph.layers.size());
  std::vector<int>& groups = divided.model.group_of_layer;
  for (int k = 0; k < parts; ++k) groups.push_back(k);
  for (int i = 0; i < layers - 2 * parts - 1; ++i) {
    groups.push_back(parts + whole.group_of_layer[i]);
  }
  const int behind = groups.back() + 1;
  for (int k = 0; k <= parts; ++k) groups.push_back(behind + k);
  return divided;
}

namespace {

// What an edge of the stage graph connects (vocabulary.h numbers the stages).
class VocabularyEdges {
 public:
  VocabularyEdges(const StageGraph& stages, int parts)
      : parts_(parts), loss_(stages.num_stages() - 1) {}

  bool FromEmbedding(const StageGraph::Edge& e) const { return e.from < parts_; }
  bool IntoHead(const StageGraph::Edge& e) const { return IsOfHead(e.to); }
  bool FromHead(const StageGraph::Edge& e) const { return IsOfHead(e.from); }

 private:
  bool IsOfHead(int stage) const { return stage >= loss_ - parts_ && stage < loss_; }

  int parts_, loss_;
};

}  // namespace

void PriceAsCollectives(const Schedule& schedule, int parts, CostTable* costs) {
  if (parts == 1) return;
  const StageGraph& stages = schedule.stages;
  // The members of a group have a share of an edge's bytes.
  const auto members = static_cast<int64_t>(schedule.placement.groups[0][0].size());
  const VocabularyEdges is(stages, parts);
  const auto embedded = std::find_if(stages.edges.begin(), stages.edges.end(),
                                     [&](const auto& e) { return is.FromEmbedding(e); });
  const Bytes activation = costs->edge_bytes[embedded - stages.edges.begin()];
  for (size_t e = 0; e < stages.edges.size(); ++e) {
    const StageGraph::Edge& edge = stages.edges[e];
    if (!is.FromEmbedding(edge) && !is.FromHead(edge) && !is.IntoHead(edge)) continue;
    Bytes& bytes = costs->edge_bytes[e];
    const Bytes whole = bytes;
    bytes = Bytes(2 * std::min(bytes, activation).value() / (parts - 1));
    const Bytes left((whole - bytes).value() / members);
    const Bytes peak = std::max(left, Bytes(0));
    // What a broadcast leaves on a device: the head's input until its backward, and the gradient of
    // what the parts of the embedding add up to.
    if (is.IntoHead(edge)) {
      StageMemory& part = costs->stages[edge.to].memory;
      part.kept += left;
      part.forward_peak += peak;
    }
    if (is.FromEmbedding(edge)) costs->stages[edge.from].memory.backward_peak += peak;
  }
}

void AddCollectiveLatency(const StageGraph& stages, const StepConfig& config,
                          const CollectiveStep& step, CostTable* costs) {
  const int parts = config.pipeline;
  if (parts == 1) return;
  const VocabularyEdges is(stages, parts);
  const auto of = [&](int calls, int steps) {
    return step.latency * (calls * steps - 1) + step.call * (calls - 1);
  };
  const int broadcast = parts - 1, all_reduce = 2 * (parts - 1);
  costs->edge_latency.assign(stages.edges.size(), EdgeLatency());
  for (size_t e = 0; e < stages.edges.size(); ++e) {
    const StageGraph::Edge& edge = stages.edges[e];
    EdgeLatency& latency = costs->edge_latency[e];
    if (is.FromEmbedding(edge)) latency = {of(1, all_reduce), of(1, broadcast)};
    if (is.IntoHead(edge)) latency = {of(1, broadcast), of(1, all_reduce)};
    if (is.FromHead(edge))
      latency.forward = of(config.vocabulary_barriers == 1 ? 3 : 2, all_reduce);
  }
}

}  // namespace pipelab
