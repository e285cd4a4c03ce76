// What models of tabular data have in common (DLRM, CANDLE-Uno): branches of dense layers, their
// join, and one number at the end.
//
//   int last = AddFeatureBranch({"cell", 942}, /*layers=*/4, /*hidden=*/4096, Activation::kRelu,
//                               &graph);
//   ...
//   AddJoin(ends, /*layers=*/4, /*hidden=*/4096, Activation::kRelu,
//           ElementLossKind::kSquaredError, &graph);
//
// Matrices start as He et al. 2015 have it: normal, deviation sqrt(2 / width of the input).
#ifndef PIPELAB_MODELS_ZOO_FEATURE_BRANCHES_H_
#define PIPELAB_MODELS_ZOO_FEATURE_BRANCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph/layer_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"

namespace pipelab {

// A field of floats of the data set.
struct FeatureField {
  std::string field;
  int64_t features = 0;
};

inline constexpr int64_t kMostBranches = 64;
inline constexpr int64_t kMostFeatures = 1 << 20;

// The field as a layer, then `layers` dense layers of `hidden`. Returns the last.
int AddFeatureBranch(const FeatureField& field, int64_t layers, int64_t hidden,
                     Activation activation, ModelGraph* graph);

// The outputs of `inputs` side by side, dense layers, a dense layer to one number, and
// its loss.
void AddJoin(const std::vector<int>& inputs, int64_t layers, int64_t hidden, Activation activation,
             ElementLossKind loss, ModelGraph* graph);

// InvalidArgument: "--dense: branch 3 reads \"a/b\"..." where a field has no name, or no features.
absl::Status CheckFeatureFields(const char* option, const std::vector<FeatureField>& fields);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_FEATURE_BRANCHES_H_
