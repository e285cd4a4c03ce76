#include "models/zoo/graph_network.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/data_input_spec.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostBlocks = 15;

absl::Status CheckGraphNetwork(const GraphNetworkConfig& c) {
  const auto invalid = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostBlocks));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckDropout(c.dropout));
  if (!c.counts.empty() && static_cast<int>(c.counts.size()) != c.layers) {
    return invalid("counts of ", c.counts.size(), " blocks: there are ", c.layers, " layers");
  }
  for (size_t i = 0; i + 1 < c.counts.size(); ++i) {
    if (c.counts[i].targets == c.counts[i + 1].sources) continue;
    return invalid("counts: block ", i, " has ", c.counts[i].targets, " targets, and block ", i + 1,
                   " ", c.counts[i + 1].sources, " sources");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelGraph> BuildGraphNetwork(const GraphNetworkConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckGraphNetwork(c));
  std::vector<BlockCounts> counts = c.counts;
  if (counts.empty()) counts.resize(c.layers, {1, 1, 1});
  ModelGraph graph;
  graph.name = "graph_network";
  graph.layers.push_back(
      DataInputSpec({.name = "rows", .field = "rows", .shape = {counts.front().sources, c.width}}));
  for (int i = 0; i < c.layers; ++i) {
    graph.layers.push_back(GraphConvSpec({.name = absl::StrCat("conv", i),
                                          .kind = c.kind,
                                          .input = i,
                                          .block = i,
                                          .counts = counts[i],
                                          .in = i == 0 ? c.width : c.hidden,
                                          .out = c.hidden,
                                          .heads = c.heads,
                                          .relu = true,
                                          .dropout = c.dropout,
                                          .input_gradient = i > 0}));
  }
  graph.layers.push_back(ClassifierSpec({.name = "classifier",
                                         .input = c.layers,
                                         .rows = counts.back().targets,
                                         .channels = c.hidden,
                                         .classes = c.classes}));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
