// DLRM (Naumov et al. 2019) as GraphPipe has it: branches of dense layers on dense features and
// branches of embedding bags on ids, side by side, then dense layers and the probability of a
// click.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildDlrm(PublishedDlrm()));
//
// Layers, branch after branch: a data input and its dense layers for each dense branch, a bag for
// each sparse one; then the join: concat, dense layers, one logit, binary cross-entropy.
#ifndef PIPELAB_MODELS_ZOO_DLRM_H_
#define PIPELAB_MODELS_ZOO_DLRM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/dense_spec.h"
#include "models/zoo/feature_branches.h"

namespace pipelab {

struct DlrmConfig {
  struct Bag {
    std::string field;
    int64_t ids = 0;   // most of a sample
    int64_t rows = 0;  // of its table
  };

  std::vector<FeatureField> dense;  // a branch each; several may read one field
  std::vector<Bag> bags;
  int64_t dense_layers = 0;  // of a dense branch
  int64_t hidden = 0;        // of these layers and those of the join
  int64_t embedding = 0;     // width of a table
  int64_t join_layers = 0;
  Activation activation = Activation::kRelu;
  bool mean = false;  // a bag is the mean of its rows, not the sum
};

// GraphPipe's: 7 dense branches of 4 layers of 4096; 7 bags of 100 ids, tables of 1M rows of 64;
// layers of 4096 after the join. Not published: 4096 features of each dense branch, 4 layers after
// the join.
DlrmConfig PublishedDlrm();

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildDlrm(const DlrmConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_DLRM_H_
