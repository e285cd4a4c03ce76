// The graph pipeline (GraphPipe, Jeon et al., ASPLOS 2025): stages form a DAG, so that branches of
// a model run beside one another and the pipeline is as deep as the DAG's longest path, not as long
// as the list of stages. Each stage runs 1F1B with as many micro-batches in flight as the stages
// after it need.
//
// A stage without successors alternates forwards and backwards: 1 in flight. While a successor with
// w in flight runs a backward and its next forward, a stage must have forwarded one micro-batch
// more, or the successor would wait: 1 + the largest w of the successors. On a chain that is 1F1B.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The caller's stages on their devices, by default a chain of one stage a device; no actions yet.
absl::StatusOr<Schedule> GraphPipeline(const SchemeParams& params) {
  if (params.stages.num_stages() == 0 && params.devices_of_stage.empty()) {
    return LoopedPipeline(params);
  }
  Schedule schedule;
  schedule.stages = params.stages.num_stages() == 0
                        ? StageGraph::Chain(static_cast<int>(params.devices_of_stage.size()))
                        : params.stages;
  const int stages = schedule.num_stages();
  Placement& placement = schedule.placement;
  placement.num_devices = params.devices;
  placement.replica_of_micro_batch.assign(params.micro_batches, 0);
  placement.groups = {params.devices_of_stage};
  if (params.devices_of_stage.empty()) {
    if (stages != params.devices) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", params.devices, ": the stage graph has ", stages,
                       " stages, one a device; use --devices=", stages));
    }
    for (int s = 0; s < stages; ++s) placement.groups[0].push_back({s});
  }
  if (static_cast<int>(placement.groups[0].size()) != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat(placement.groups[0].size(), " device groups for ", stages, " stages"));
  }
  std::vector<char> taken(params.devices, 0);
  for (const std::vector<int>& group : placement.groups[0]) {
    for (int d : group) {
      if (d < 0 || d >= params.devices || taken[d] != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--devices=", params.devices, ": device ", d,
                         " of a stage's group does not exist, or holds another stage too"));
      }
      taken[d] = 1;
    }
  }
  schedule.num_micro_batches = params.micro_batches;
  schedule.order.resize(params.devices);
  return schedule;
}

// [stage] Forwards that run before the first backward.
absl::StatusOr<std::vector<int>> InFlight(const StageGraph& stages) {
  const std::vector<int> order = stages.TopologicalOrder();
  if (static_cast<int>(order.size()) < stages.num_stages()) {
    return absl::InvalidArgumentError("--edges: the stage graph has a cycle");
  }
  std::vector<int> in_flight(stages.num_stages(), 1);
  for (auto s = order.rbegin(); s != order.rend(); ++s) {
    for (int e : stages.out_edges[*s]) {
      in_flight[*s] = std::max(in_flight[*s], 1 + in_flight[stages.edges[e].to]);
    }
  }
  return in_flight;
}

}  // namespace

absl::StatusOr<Schedule> MakeGraph(const SchemeParams& params) {
  PIPELAB_RETURN_IF_ERROR(CheckOneChunk(params));
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, GraphPipeline(params));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> in_flight, InFlight(schedule.stages));
  for (int s = 0; s < schedule.num_stages(); ++s) {
    std::vector<Action> forwards, backwards;
    for (int m = 0; m < params.micro_batches; ++m) {
      forwards.push_back(Forward(s, m));
      backwards.push_back(Backward(s, m));
    }
    const std::vector<Action> order = OneForwardOneBackward(forwards, backwards, in_flight[s] - 1);
    for (int d : schedule.placement.groups[0][s]) schedule.order[d] = order;
  }
  return schedule;
}

}  // namespace pipelab
