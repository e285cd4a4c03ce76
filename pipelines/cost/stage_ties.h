// What a partition makes of a model: the layers of each stage, and the parameters that several
// stages share.
//
//   std::vector<int> first = *PartitionChain(costs, 4);          // plan/partition.h
//   LayerRange range = StageLayers(graph, first, 2);             // [range.begin, range.end)
//   LoweringOptions options;
//   options.ties = StageTies(graph, first);
#ifndef PIPELAB_PIPELINES_COST_STAGE_TIES_H_
#define PIPELAB_PIPELINES_COST_STAGE_TIES_H_

#include <vector>

#include "absl/types/span.h"
#include "models/graph/layer_spec.h"
#include "pipelines/ir/program.h"

namespace pipelab {

struct LayerRange {
  int begin = 0, end = 0;
};

// `first_layers` is a partition: the first layer of each stage, ascending from 0.
LayerRange StageLayers(const ModelGraph& graph, absl::Span<const int> first_layers, int stage);

// A tie within one stage is that stage's own affair and not listed.
std::vector<Tie> StageTies(const ModelGraph& graph, absl::Span<const int> first_layers);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_TIES_H_
