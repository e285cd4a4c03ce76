#include "models/zoo/candle_uno.h"

#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckCandleUno(const CandleUnoConfig& c) {
  PIPELAB_RETURN_IF_ERROR(
      CheckModelSize("branches", static_cast<int64_t>(c.branches.size()), kMostBranches));
  PIPELAB_RETURN_IF_ERROR(CheckFeatureFields("branches", c.branches));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  return CheckModelSize("join_layers", c.join_layers, kMostLayers);
}

}  // namespace

CandleUnoConfig PublishedCandleUno(int branches) {
  CandleUnoConfig c;
  for (int i = 0; i < branches; ++i) c.branches.push_back({absl::StrCat("features", i), 4096});
  c.layers = 4;
  c.hidden = 4096;
  c.join_layers = 4;
  return c;
}

absl::StatusOr<ModelGraph> BuildCandleUno(const CandleUnoConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckCandleUno(c));
  ModelGraph graph;
  graph.name = "candle_uno";
  std::vector<int> ends;
  for (const FeatureField& field : c.branches) {
    ends.push_back(AddFeatureBranch(field, c.layers, c.hidden, c.activation, &graph));
  }
  AddJoin(ends, c.join_layers, c.hidden, c.activation, ElementLossKind::kSquaredError, &graph);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
