#include "pipelines/schedules/token_passes.h"

#include <numeric>
#include <utility>

namespace pipelab {

Schedule TokenPasses(int devices, std::vector<int32_t> carried) {
  const int passes = static_cast<int>(carried.size());
  Schedule schedule;
  schedule.forward_only = true;
  schedule.num_micro_batches = passes;
  std::vector<StageGraph::Edge> edges = StageGraph::Chain(devices).edges;
  StageGraph::Edge tokens{devices - 1, 0};
  tokens.output = Reads::List();
  edges.push_back(tokens);
  schedule.stages = StageGraph::FromEdges(devices, std::move(edges));
  std::vector<int> device_of_stage(devices);
  std::iota(device_of_stage.begin(), device_of_stage.end(), 0);
  schedule.placement = Placement::Single(device_of_stage, devices, passes);
  schedule.order.resize(devices);
  for (int d = 0; d < devices; ++d) {
    for (int m = 0; m < passes; ++m) {
      schedule.order[d].push_back({ActionKind::kForward, static_cast<int16_t>(d), m, 0, 0});
    }
  }
  schedule.carried = std::move(carried);
  return schedule;
}

}  // namespace pipelab
