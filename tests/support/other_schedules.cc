#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_schedules.h"

namespace pipelab {

std::vector<Schedule> OtherSchedules() {
  constexpr Reads kNone = Reads::None();
  const Schedule chain = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  std::vector<Schedule> schedules;
  Schedule decoding = ChainOf(3, {"0F0 0F1 0F2", "1F0 1F1 1F2"});
  StageGraph::Edge back{1, 0};
  back.output = Reads::List();
  decoding.stages = StageGraph::FromEdges(2, {{0, 1}, back});
  decoding.forward_only = true;
  decoding.carried = {-1, 0, -1};
  schedules.push_back(std::move(decoding));
  Schedule workers = ChainOf(2, {"0F0", "0F1", "1F0 1B0 1F1 1B1"});
  workers.stages = StageGraph::FromEdges(2, {{0, 1, kNone}});
  workers.placement.groups = {{{0}, {2}}, {{1}, {2}}};
  workers.placement.replica_of_micro_batch = {0, 1};
  workers.prepares = {1, 0};
  schedules.push_back(std::move(workers));
  for (const int window : {1, 2}) {
    Schedule replay = chain;
    replay.stages = StageGraph::FromEdges(2, {{0, 1, kNone}});
    replay.stages.SetReplayWindow(window);
    schedules.push_back(replay);
    // Stage 1 runs half as many passes.
    replay = ChainOf(4, {"0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3", "1F0 1B0 1F1 1B1"});
    replay.stages = StageGraph::FromEdges(2, {{0, 1, kNone}});
    replay.stages.SetReplayWindow(window);
    replay.micro_batches_of_stage = {4, 2};
    schedules.push_back(std::move(replay));
  }
  Schedule merged = chain;
  merged.eager_reductions = merged.merges_passes = true;
  schedules.push_back(std::move(merged));
  for (const auto& [devices, group] : {std::make_pair(2, 1), {3, 1}, {4, 2}}) {
    Schedule ring = ChainOf(devices, std::vector<std::string>(devices));
    ring.placement.groups.assign(devices, std::vector<std::vector<int>>(devices));
    for (int d = 0; d < devices; ++d) {
      ring.placement.groups[d].assign(devices, {d});
      ring.placement.replica_of_micro_batch[d] = d;
      for (int stage = 0; stage < devices; ++stage) {
        ring.order[d].push_back({ActionKind::kForward, static_cast<int16_t>(stage), d});
      }
      for (int stage = devices - 1; stage >= 0; --stage) {
        ring.order[d].push_back({ActionKind::kBackward, static_cast<int16_t>(stage), d});
      }
    }
    ring.weights_travel = true;
    ring.weight_group = group;
    schedules.push_back(std::move(ring));
  }
  return schedules;
}

}  // namespace pipelab
