// A model whose layers stand in groups, such as the cells of AmoebaNet or the blocks of a ResNet:
// what its paper calls a layer and cuts between.
//
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildAmoebaNet(config));
//   m.num_groups();                                       // L + 6
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stages, StagesOfGroups(m, {5, 7, 6, 6}));
#ifndef PIPELAB_MODELS_ZOO_LAYER_GROUPS_H_
#define PIPELAB_MODELS_ZOO_LAYER_GROUPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct GroupedModel {
  ModelGraph graph;
  std::vector<int> group_of_layer;  // ascending from 0

  int num_groups() const { return group_of_layer.empty() ? 0 : group_of_layer.back() + 1; }
};

// The stage of each layer where the stages take these numbers of groups, in order. InvalidArgument
// unless each is at least 1 and they add up to all.
absl::StatusOr<std::vector<int>> StagesOfGroups(const GroupedModel& model,
                                                absl::Span<const int> groups_of_stage);

// Consecutive layers whose names begin with the same word before the first '/' are a group:
// "block3/attention" and "block3/mlp".
GroupedModel GroupByName(ModelGraph graph);

// What planners of branching models cut between: an MLP is in a group with the attention in front
// of it, and a layer without parameters with the one behind it, where that is the only one to take
// its output and takes no other, or, where it is the last, with the one before it. Groups are
// consecutive layers.
GroupedModel GroupForPlanning(ModelGraph graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_LAYER_GROUPS_H_
