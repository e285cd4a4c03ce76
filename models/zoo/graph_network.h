// Graph networks on sampled blocks: GraphSAGE, GIN or GAT layers, then a classifier of the batch's
// targets (its logits' layer is a plain one, on the targets alone).
//
//   GraphNetworkConfig config;                       // SALIENT's GraphSAGE: 3 layers of 256
//   config.width = 128, config.classes = 130;
//   config.counts = {{21800, 4100, 25000}, {4100, 1100, 9000}, {1100, 256, 3800}};
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGraphNetwork(config));
//
// A sample of the model is a whole mini-batch, whose blocks have these counts
// (specs/graph_conv_spec.h).
#ifndef PIPELAB_MODELS_ZOO_GRAPH_NETWORK_H_
#define PIPELAB_MODELS_ZOO_GRAPH_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {

struct GraphNetworkConfig {
  GraphConvKind kind = GraphConvKind::kSage;
  int layers = 3;
  int64_t width = 128;  // of a vertex's row
  int64_t hidden = 256;
  int64_t heads = 1;  // of GAT
  int64_t classes = 0;
  double dropout = 0.5;
  // [layer] Of the block that it computes; empty: of one vertex, for parameters alone.
  std::vector<BlockCounts> counts;
};

// The layers: rows of data, `layers` layers on the graph, the classifier. InvalidArgument names the
// option and its value.
absl::StatusOr<ModelGraph> BuildGraphNetwork(const GraphNetworkConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_GRAPH_NETWORK_H_
