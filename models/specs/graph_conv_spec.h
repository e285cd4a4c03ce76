// Layers on a graph: rows of a block's sources in, rows of its targets out. What they cost;
// sage_conv.cc, gin_conv.cc and gat_conv.cc run them.
//
//   LayerSpec layer = GraphConvSpec({.name = "conv0", .kind = GraphConvKind::kSage, .input = 0,
//                                    .block = 0, .counts = {21800, 4100, 25000},
//                                    .in = 128, .out = 256, .relu = true, .dropout = 0.5});
//
//   sage  y_t = x_t w_self + mean over t's edges of x_s w_neighbours     (no biases)
//   gin   y_t = relu(h w1 + b1) w2 + b2 with h = x_t + sum over t's edges of x_s
//   gat   y_t = sum over t's edges of a x_s w, a = softmax of leaky_relu(x_s w . l + x_t w . r),
//         heads side by side; a target without edges gets zeros
// and then ReLU and dropout, if asked.
//
// A sample of such a layer is a whole mini-batch: `counts` are those of its block, and costs and
// shapes follow them. Running layers take the counts of the block that they get
// (LayerContext::graph), so one layer runs micro-batches of any counts; what a program's passes
// cost is a specification of each one's own counts (Schedule::carried has passes with costs of
// their own).
//
// Papers: Hamilton et al. (GraphSAGE), NeurIPS 2017; Xu et al. (GIN), ICLR 2019; Velickovic et al.
// (GAT), ICLR 2018.
#ifndef PIPELAB_MODELS_SPECS_GRAPH_CONV_SPEC_H_
#define PIPELAB_MODELS_SPECS_GRAPH_CONV_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kSageConv[] = "sage_conv";
inline constexpr char kGinConv[] = "gin_conv";
inline constexpr char kGatConv[] = "gat_conv";

enum class GraphConvKind : uint8_t { kSage, kGin, kGat };

struct BlockCounts {
  int64_t sources = 0, targets = 0, edges = 0;
};

struct GraphConvSizes {
  std::string name;
  GraphConvKind kind = GraphConvKind::kSage;
  int input = 0;  // index of the layer before
  int block = 0;  // place in LayerContext::graph
  BlockCounts counts;
  int64_t in = 0, out = 0;
  int64_t heads = 1;  // of gat: divide `out`
  bool relu = true;
  double dropout = 0;
  // False: its input is data, which needs no gradient.
  bool input_gradient = true;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct SageParameter {
  enum { kSelf, kNeighbours };  // [in, out] each
};
struct GinParameter {
  enum { kW1, kB1, kW2, kB2 };  // [in, out], [out], [out, out], [out]
};
struct GatParameter {
  enum { kW, kSource, kTarget };  // [in, out], [out], [out]
};

inline constexpr float kGatSlope = 0.2f;  // of leaky_relu

LayerSpec GraphConvSpec(const GraphConvSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GRAPH_CONV_SPEC_H_
