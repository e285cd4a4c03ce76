// The flows of all edges of a schedule, made once for those that ask of each pass.
//
//   const FlowMaps flows(schedule);
//   flows.Along(edge, /*gradient=*/true).Readers(pass)
#ifndef PIPELAB_PIPELINES_IR_FLOW_MAPS_H_
#define PIPELAB_PIPELINES_IR_FLOW_MAPS_H_

#include <vector>

#include "pipelines/ir/schedule.h"

namespace pipelab {

class FlowMaps {
 public:
  FlowMaps() = default;
  // The schedule outlives the maps and stays where it is.
  explicit FlowMaps(const Schedule& schedule) {
    outputs_.reserve(schedule.stages.edges.size());
    gradients_.reserve(schedule.stages.edges.size());
    for (const StageGraph::Edge& e : schedule.stages.edges) {
      outputs_.push_back(schedule.Outputs(e));
      gradients_.push_back(schedule.Gradients(e));
    }
  }

  // The edge's outputs, or its gradients.
  const PassMap& Along(int edge, bool gradient) const {
    return (gradient ? gradients_ : outputs_)[edge];
  }

 private:
  std::vector<PassMap> outputs_, gradients_;  // [edge]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_FLOW_MAPS_H_
