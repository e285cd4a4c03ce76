// GraphPipe's parallel stages of a model of branches that meet in one join.
//
//   const ModelGraph g = *BuildDlrm(config);
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stages, BranchStages(g, /*stages_of_branch=*/2));
#ifndef PIPELAB_MODELS_ZOO_BRANCH_STAGES_H_
#define PIPELAB_MODELS_ZOO_BRANCH_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// The stage of each layer: each branch in `stages_of_branch` stages, as even in layers as can be (a
// shorter branch in as many as it has layers), and one last stage from the join on. Numbered side
// by side: the first stage of every branch comes before the second one of any.
//
// A branch is a layer without inputs and the layers behind it that take just the one before; the
// join is the first layer of several inputs. InvalidArgument where the graph's layers are not
// branch after branch with the join behind them; a chain is one branch without a join.
absl::StatusOr<std::vector<int>> BranchStages(const ModelGraph& graph, int stages_of_branch);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_BRANCH_STAGES_H_
