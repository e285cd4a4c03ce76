// PPLL (arXiv 2411.12780): a pipeline whose stages learn locally. Each stage has a loss of its own
// and takes what the stage before sends as data, so it runs the backward of a micro-batch right
// after its forward and sends no gradient back.
//
// A device holds one micro-batch at a time (1F1B: P - r). With equal stages of forward f, backward
// b and head a, a step of M micro-batches takes (P - 1) f + V M (f + a + b); with several stages
// per device where P divides M. What a stage sends does not depend on its step, so training is
// bit-equal to the serial local-learning loop, which is this scheme on one device.
//
// With --update_interval the stages' steps are in the order, each behind so many micro-batches, and
// no flush is between them. That changes no bit: a stage computes with its newest weights.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/pipedream.h"

namespace pipelab {

absl::Status CheckLocal(const SchemeParams& params) {
  if (params.update_interval == 0) return absl::OkStatus();  // a step at the end
  if (params.update_interval < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--update_interval=", params.update_interval,
                     ": must be at least 1, or 0 for one step behind all micro-batches"));
  }
  return CheckUpdates(params, params.update_interval);
}

absl::StatusOr<Schedule> MakeLocal(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (StageGraph::Edge& e : schedule.stages.edges) e.lag = StageGraph::kNoGradient;
  const int devices = params.devices, every = params.update_interval;
  const auto add = [&](int stage, int m) {
    std::vector<Action>& order = schedule.order[stage % devices];
    const auto version = static_cast<int16_t>(every == 0 ? 0 : m / every);
    for (Action a : {Forward(stage, m), Backward(stage, m)}) {
      a.version = version;
      order.push_back(a);
    }
    if (every == 0 || (m + 1) % every != 0) return;
    order.push_back(
        {ActionKind::kStep, static_cast<int16_t>(stage), 0, 0, static_cast<int16_t>(version + 1)});
  };
  // P micro-batches through a stage of each device, then through the next one.
  for (int first = 0; first < params.micro_batches; first += devices) {
    const int end = std::min(first + devices, params.micro_batches);
    for (int stage = 0; stage < devices * params.virtual_stages; ++stage) {
      for (int m = first; m < end; ++m) add(stage, m);
    }
  }
  return schedule;
}

}  // namespace pipelab
