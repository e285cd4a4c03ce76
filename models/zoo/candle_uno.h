// CANDLE-Uno (the Uno benchmark of CANDLE: how a drug acts on a tumour) as GraphPipe has it: a
// branch of dense layers for each family of features, side by side, then dense layers and one
// number.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildCandleUno(PublishedCandleUno()));
//
// Layers, branch after branch: a data input and its dense layers; then the join: concat, dense
// layers, the number, squared error.
#ifndef PIPELAB_MODELS_ZOO_CANDLE_UNO_H_
#define PIPELAB_MODELS_ZOO_CANDLE_UNO_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/dense_spec.h"
#include "models/zoo/feature_branches.h"

namespace pipelab {

struct CandleUnoConfig {
  std::vector<FeatureField> branches;
  int64_t layers = 0;  // of a branch
  int64_t hidden = 0;  // of these layers and those of the join
  int64_t join_layers = 0;
  Activation activation = Activation::kRelu;
};

// GraphPipe's: 7 branches of 4 layers of 4096, or another number of branches. Not published: 4096
// features of each branch, 4 layers after the join.
CandleUnoConfig PublishedCandleUno(int branches = 7);

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildCandleUno(const CandleUnoConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_CANDLE_UNO_H_
