#include "pipelines/plan/grid_cut.h"

#include <vector>

#include "pipelines/cluster/grid_links.h"
#include "pipelines/plan/partition.h"
#include "tools/base/status_macros.h"

namespace pipelab {

TensorGroup TensorGroupOf(const GridModel& model, TensorParallel split) {
  return {split, RingHop(*model.cluster, {split.degree, 1})};
}

absl::StatusOr<std::vector<StageCost>> GroupTimes(const GridModel& model, TensorParallel split,
                                                  int64_t samples) {
  const Machine machine = {model.cluster->device, model.type};
  const TensorGroup tensor = TensorGroupOf(model, split);
  const GroupedModel& m = *model.model;
  std::vector<StageCost> groups(m.num_groups());
  for (size_t i = 0; i < m.graph.layers.size(); ++i) {
    StageCost& group = groups[m.group_of_layer[i]];
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes times,
                             TimesOf(m.graph.layers[i], machine, samples, TokenSlice(), tensor));
    group.forward += times.forward;
    group.recompute += times.forward;
    group.backward_input += times.backward_input;
    group.backward_weight += times.backward_weight;
  }
  return groups;
}

absl::StatusOr<std::vector<int>> CutGroups(const std::vector<StageCost>& times, bool recompute,
                                           int stages) {
  std::vector<double> costs;
  for (const StageCost& t : times) {
    Nanoseconds all = t.forward + t.backward_input + t.backward_weight;
    if (recompute) all += t.recompute;
    costs.push_back(static_cast<double>(all.value()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first, PartitionChain(costs, stages));
  return StageSizes(first, static_cast<int>(times.size()));
}

}  // namespace pipelab
