// The graph pipeline (GraphPipe, Jeon et al., ASPLOS 2025): stages form a DAG, so that branches of
// a model run in parallel, and the pipeline is as deep as the DAG's longest path, not as long
// as the list of stages; and stages choose the size of their micro-batches. Each stage runs
// kFkB: `in flight` forwards, then k backwards and k forwards in turn (k = 1: 1F1B).
//
// How many must be in flight. Samples are counted in the smallest micro-batches; a stage's group of
// k micro-batches has b(s) of them. Let a sample take one unit of time at each stage, forward and
// backward together, whatever its micro-batch. A stage that never waits ends the backwards of all
// samples up to x (a multiple of b) at x + lag, and then begins the forwards of those up to
// x + W, W being what it holds in flight. A stage without successors has W = b, lag = 0. Stage s
// before stage t:
//
//   backward  s may begin once t has ended all of s's group. If t's are not larger, that is at
//             x + lag(t); if they are, the first of s's groups in one of t's waits b(t) - b(s)
//             longer. Then it takes up to b(s). So lag(s) = max over t of lag(t) + max(b(s), b(t)).
//   forward   t needs the samples up to x + W(t) at x + lag(t). At s they are in the group up to
//             x + W(t) rounded up to b(s), at most b(s) - b(t) more where b(s) is larger, and that
//             forward follows the backwards up to W(s) samples before it. So W(s) is the largest
//             W(t) + max(0, b(s) - b(t)) + lag(s) - lag(t) over t, rounded up to b(s).
//
// With equal groups W = b (1 + the largest W / b of the successors), which on a chain is 1F1B. With
// one successor W(s) = W(t) + b(s) + |b(s) - b(t)|.
//
// No deadlock: give each group's backward the time x + lag and its forward x - W + lag, x being
// where its samples end. Nothing comes before what it needs, neither on its device nor by the two
// inequalities, and where times are equal only forwards follow forwards, along the DAG, or a
// forward the backward before it.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The caller's stages, by default a chain of one stage per device.
absl::StatusOr<StageGraph> StagesOf(const SchemeParams& params) {
  if (params.stages.num_stages() == 0) {
    return StageGraph::Chain(params.devices_of_stage.empty()
                                 ? params.devices
                                 : static_cast<int>(params.devices_of_stage.size()));
  }
  if (static_cast<int>(params.stages.TopologicalOrder().size()) < params.stages.num_stages()) {
    return absl::InvalidArgumentError("--edges: the stage graph has a cycle");
  }
  return params.stages;
}

absl::StatusOr<Placement> PlacementOf(const SchemeParams& params, int stages) {
  Placement placement;
  placement.num_devices = params.devices;
  placement.replica_of_micro_batch.assign(params.micro_batches, 0);
  placement.groups = {params.devices_of_stage};
  std::vector<std::vector<int>>& groups = placement.groups[0];
  if (groups.empty()) {
    if (stages != params.devices) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", params.devices, ": the stage graph has ", stages,
                       " stages, one per device; use --devices=", stages));
    }
    for (int s = 0; s < stages; ++s) groups.push_back({s});
  }
  if (static_cast<int>(groups.size()) != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat(groups.size(), " device groups for ", stages, " stages"));
  }
  std::vector<char> taken(params.devices, 0);
  for (const std::vector<int>& group : groups) {
    for (int d : group) {
      if (d < 0 || d >= params.devices || taken[d] != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--devices=", params.devices, ": device ", d,
                         " of a stage's group does not exist, or holds another stage too"));
      }
      taken[d] = 1;
    }
  }
  return placement;
}

// Empty where all stages run the same.
absl::StatusOr<std::vector<int32_t>> MicroBatchesOf(const SchemeParams& params,
                                                    const StageGraph& stages) {
  const std::vector<int32_t>& counts = params.micro_batches_of_stage;
  if (counts.empty()) return counts;
  const auto error = [&](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stage_micro_batches=", absl::StrJoin(counts, ","), ": ", why...));
  };
  if (static_cast<int>(counts.size()) != stages.num_stages()) {
    return error(counts.size(), " numbers for ", stages.num_stages(),
                 " stages; give one per stage");
  }
  for (int32_t count : counts) {
    if (count >= 1 && params.micro_batches % count == 0) continue;
    return error(count, " does not divide --micro_batches=", params.micro_batches);
  }
  const int32_t most = *std::max_element(counts.begin(), counts.end());
  if (most != params.micro_batches) {
    return error("the largest number is ", most, "; use --micro_batches=", most);
  }
  for (const StageGraph::Edge& e : stages.edges) {
    if (counts[e.from] % counts[e.to] == 0 || counts[e.to] % counts[e.from] == 0) continue;
    return error("stages ", e.from, " and ", e.to, " share an edge, and neither of ",
                 counts[e.from], " and ", counts[e.to], " divides the other");
  }
  if (*std::min_element(counts.begin(), counts.end()) == most) return std::vector<int32_t>();
  return counts;
}

// [stage] W, in the stage's micro-batches.
std::vector<int> InFlight(const Schedule& schedule, int k) {
  const StageGraph& graph = schedule.stages;
  const int stages = schedule.num_stages();
  std::vector<int64_t> group(stages), samples(stages), lag(stages, 0);
  std::vector<int> in_flight(stages);
  const std::vector<int> order = graph.TopologicalOrder();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int s = *it;
    const int64_t b = group[s] = int64_t{schedule.MicroBatchSize(s)} * k;
    for (int e : graph.out_edges[s]) {
      const int t = graph.edges[e].to;
      lag[s] = std::max(lag[s], lag[t] + std::max(b, group[t]));
    }
    samples[s] = b;
    for (int e : graph.out_edges[s]) {
      const int t = graph.edges[e].to;
      samples[s] =
          std::max(samples[s], samples[t] + std::max<int64_t>(0, b - group[t]) + lag[s] - lag[t]);
    }
    samples[s] = (samples[s] + b - 1) / b * b;
    in_flight[s] =
        static_cast<int>(std::min<int64_t>(samples[s] / b * k, schedule.MicroBatches(s)));
  }
  return in_flight;
}

std::vector<Action> KForwardsKBackwards(int stage, int micro_batches, int in_flight, int k) {
  std::vector<Action> order;
  order.reserve(size_t{2} * micro_batches);
  int f = 0, b = 0;
  while (f < in_flight) order.push_back(Forward(stage, f++));
  while (b < micro_batches) {
    for (int i = 0; i < k && b < micro_batches; ++i) order.push_back(Backward(stage, b++));
    for (int i = 0; i < k && f < micro_batches; ++i) order.push_back(Forward(stage, f++));
  }
  return order;
}

}  // namespace

absl::Status CheckGraph(const SchemeParams& params) {
  if (params.group_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--group_size=", params.group_size, ": must be at least 1 (0: 1)"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const StageGraph stages, StagesOf(params));
  PIPELAB_RETURN_IF_ERROR(PlacementOf(params, stages.num_stages()).status());
  return MicroBatchesOf(params, stages).status();
}

absl::StatusOr<Schedule> MakeGraph(const SchemeParams& params) {
  const int k = std::clamp(params.group_size, 1, params.micro_batches);
  Schedule schedule;
  PIPELAB_ASSIGN_OR_RETURN(schedule.stages, StagesOf(params));
  PIPELAB_ASSIGN_OR_RETURN(schedule.placement, PlacementOf(params, schedule.num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(schedule.micro_batches_of_stage,
                           MicroBatchesOf(params, schedule.stages));
  schedule.num_micro_batches = params.micro_batches;
  schedule.order.resize(params.devices);
  const std::vector<int> in_flight = InFlight(schedule, k);
  for (int s = 0; s < schedule.num_stages(); ++s) {
    const std::vector<Action> order =
        KForwardsKBackwards(s, schedule.MicroBatches(s), in_flight[s], k);
    for (int d : schedule.placement.groups[0][s]) schedule.order[d] = order;
  }
  return schedule;
}

}  // namespace pipelab
