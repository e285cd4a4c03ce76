#include "models/zoo/dlrm.h"

#include "absl/strings/str_cat.h"
#include "models/specs/embedding_bag_spec.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostRows = 1 << 30;

absl::Status CheckDlrm(const DlrmConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize(
      "branches", static_cast<int64_t>(c.dense.size() + c.bags.size()), kMostBranches));
  PIPELAB_RETURN_IF_ERROR(CheckFeatureFields("dense", c.dense));
  for (size_t i = 0; i < c.bags.size(); ++i) {
    const DlrmConfig::Bag& bag = c.bags[i];
    if (!bag.field.empty() && bag.ids >= 1 && bag.ids <= kMostFeatures && bag.rows >= 1 &&
        bag.rows <= kMostRows) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--bags: bag ", i, " is \"", bag.field, "\" of ",
                                                   bag.ids, " ids and ", bag.rows,
                                                   " rows: must have a name, ids and rows"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("dense_layers", c.dense_layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("embedding", c.embedding, kMostHidden));
  return CheckModelSize("join_layers", c.join_layers, kMostLayers);
}

}  // namespace

DlrmConfig PublishedDlrm() {
  DlrmConfig c;
  for (int i = 0; i < 7; ++i) {
    c.dense.push_back({absl::StrCat("dense", i), 4096});
    c.bags.push_back({absl::StrCat("bag", i), 100, 1'000'000});
  }
  c.dense_layers = 4;
  c.hidden = 4096;
  c.embedding = 64;
  c.join_layers = 4;
  return c;
}

absl::StatusOr<ModelGraph> BuildDlrm(const DlrmConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckDlrm(c));
  ModelGraph graph;
  graph.name = "dlrm";
  std::vector<int> ends;
  for (const FeatureField& field : c.dense) {
    ends.push_back(AddFeatureBranch(field, c.dense_layers, c.hidden, c.activation, &graph));
  }
  for (const DlrmConfig::Bag& bag : c.bags) {
    EmbeddingBagSizes sizes;
    sizes.name = absl::StrCat("bag", graph.layers.size(), "/", bag.field);
    sizes.field = bag.field;
    sizes.ids = bag.ids;
    sizes.rows = bag.rows;
    sizes.width = c.embedding;
    sizes.mean = c.mean;
    graph.layers.push_back(EmbeddingBagSpec(sizes));
    ends.push_back(static_cast<int>(graph.layers.size()) - 1);
  }
  AddJoin(ends, c.join_layers, c.hidden, c.activation, ElementLossKind::kBinaryCrossEntropy,
          &graph);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
