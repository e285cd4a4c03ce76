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
  if (const auto loss = LossKernelsOf(whole.graph)) {
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

void PriceAsCollectives(const Schedule& schedule, int parts, CostTable* costs) {
  if (parts == 1) return;
  const StageGraph& stages = schedule.stages;
  // The members of a group have a share of an edge's bytes.
  const auto members = static_cast<int64_t>(schedule.placement.groups[0][0].size());
  const int loss = stages.num_stages() - 1, first_part = loss - parts;
  const auto is_of_head = [&](int stage) { return stage >= first_part && stage < loss; };
  const auto is_of_embedding = [&](int stage) { return stage < parts; };
  const auto embedded = std::find_if(stages.edges.begin(), stages.edges.end(),
                                     [&](const auto& e) { return is_of_embedding(e.from); });
  const Bytes activation = costs->edge_bytes[embedded - stages.edges.begin()];
  for (size_t e = 0; e < stages.edges.size(); ++e) {
    const StageGraph::Edge& edge = stages.edges[e];
    if (!is_of_embedding(edge.from) && !is_of_head(edge.from) && !is_of_head(edge.to)) continue;
    Bytes& bytes = costs->edge_bytes[e];
    const Bytes whole = bytes;
    bytes = Bytes(2 * std::min(bytes, activation).value() / (parts - 1));
    const Bytes left((whole - bytes).value() / members);
    const Bytes peak = std::max(left, Bytes(0));
    // What a broadcast leaves on a device: the head's input until its backward, and the gradient of
    // what the parts of the embedding add up to.
    if (is_of_head(edge.to)) {
      StageMemory& part = costs->stages[edge.to].memory;
      part.kept += left;
      part.forward_peak += peak;
    }
    if (is_of_embedding(edge.from)) costs->stages[edge.from].memory.backward_peak += peak;
  }
}

}  // namespace pipelab
