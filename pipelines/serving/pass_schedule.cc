// A plan as a schedule: stages are devices, passes are micro-batches.
#include <utility>
#include <vector>

#include "pipelines/serving/pass_plan.h"

namespace pipelab {

Schedule PassSchedule(const PassPlan& plan) {
  const int devices = plan.options.devices, passes = static_cast<int>(plan.passes.size());
  Schedule schedule;
  schedule.name = plan.options.chunk > 0 ? "prefill_decode" : "decode";  // schedules/decode.cc
  schedule.forward_only = true;
  schedule.num_micro_batches = passes;
  std::vector<StageGraph::Edge> edges = StageGraph::Chain(devices).edges;
  StageGraph::Edge tokens{devices - 1, 0};
  tokens.carries = true;
  edges.push_back(tokens);
  schedule.stages = StageGraph::FromEdges(devices, std::move(edges));
  std::vector<int> device_of_stage;
  for (int d = 0; d < devices; ++d) device_of_stage.push_back(d);
  schedule.placement = Placement::Single(device_of_stage, devices, passes);
  schedule.order.resize(devices);
  for (int m = 0; m < passes; ++m) {
    schedule.carried.push_back(plan.passes[m].source);
    for (int d = 0; d < devices; ++d) {
      schedule.order[d].push_back({ActionKind::kForward, static_cast<int16_t>(d), m, 0, 0});
    }
  }
  return schedule;
}

}  // namespace pipelab
