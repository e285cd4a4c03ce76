#include "pipelines/step/recompute_gaps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/early_recompute.h"

namespace pipelab {

absl::StatusOr<Schedule> RecomputeEarly(const StepConfig& c, Schedule schedule,
                                        const PassLengths& lengths) {
  if (c.early_recompute == 0) return schedule;
  const auto error = [&](const auto&... words) {
    return absl::InvalidArgumentError(
        absl::StrCat("early_recompute=", c.early_recompute, ": ", words...));
  };
  if (c.recompute != Recompute::kFull) {
    return error("requires recompute=full, not recompute=", RecomputeName(c.recompute));
  }
  if (schedule.weights_travel) {
    return error(c.scheme, " rebuilds a stage when its weights come by; leave it out");
  }
  return RecomputeInGaps(std::move(schedule), lengths, c.early_recompute);
}

PassLengths LengthsOf(const CostTable& costs, const Schedule& schedule) {
  PassLengths lengths;
  const int slices = schedule.num_slices;
  for (const StageCost& c : costs.stages) {
    lengths.forward.push_back(c.forward.value() / slices);
    lengths.recompute.push_back(c.recompute.value() / slices);
    lengths.backward_input.push_back(c.backward_input.value() / slices);
    lengths.backward_weight.push_back(c.backward_weight.value() / slices);
  }
  lengths.hop.resize(costs.stages.size());
  const auto& devices = schedule.placement.groups[0];
  for (size_t i = 0; i < schedule.stages.edges.size(); ++i) {
    const StageGraph::Edge& e = schedule.stages.edges[i];
    if (e.to != e.from + 1 || devices[e.from] == devices[e.to]) continue;
    const PathCost path = costs.PathBetween(devices[e.from][0], devices[e.to][0]);
    const Nanoseconds hop = path.latency + path.TransferTime(costs.edge_bytes[i]);
    lengths.hop[e.from] = hop.value() / slices;
  }
  return lengths;
}

}  // namespace pipelab
