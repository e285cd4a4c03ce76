#include "pipelines/schedules/schemes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {

Schedule LoopedPipeline(const SchemeParams& params) {
  const int stages = params.devices * params.chunks;
  std::vector<int> device_of_stage(stages);
  for (int s = 0; s < stages; ++s) device_of_stage[s] = s % params.devices;
  Schedule schedule;
  schedule.stages = StageGraph::Chain(stages);
  schedule.placement = Placement::Single(device_of_stage, params.devices, params.micro_batches);
  schedule.num_micro_batches = params.micro_batches;
  schedule.order.resize(params.devices);
  return schedule;
}

std::vector<Action> OneForwardOneBackward(const std::vector<Action>& forwards,
                                          const std::vector<Action>& backwards, int warm_up) {
  std::vector<Action> order;
  order.reserve(forwards.size() + backwards.size());
  const size_t first = std::min(forwards.size(), static_cast<size_t>(warm_up));
  order.insert(order.end(), forwards.begin(), forwards.begin() + first);
  size_t b = 0;
  for (size_t f = first; f < forwards.size(); ++f) {
    order.push_back(forwards[f]);
    order.push_back(backwards[b++]);
  }
  order.insert(order.end(), backwards.begin() + b, backwards.end());
  return order;
}

std::vector<Action> SplitOneForwardOneBackward(const std::vector<Action>& forwards,
                                               const std::vector<Action>& inputs, int warm_up,
                                               int lag) {
  std::vector<Action> order;
  order.reserve(3 * inputs.size());
  const auto weight_of = [&](size_t i) {
    return BackwardWeight(inputs[i].stage, inputs[i].micro_batch);
  };
  size_t i = 0, w = 0;
  for (const Action& a : OneForwardOneBackward(forwards, inputs, warm_up)) {
    order.push_back(a);
    if (a.kind == ActionKind::kForward) continue;
    if (i++ >= static_cast<size_t>(lag)) order.push_back(weight_of(w++));
  }
  while (w < inputs.size()) order.push_back(weight_of(w++));
  return order;
}

void InsertRecompute(Schedule* schedule) {
  for (std::vector<Action>& list : schedule->order) {
    std::vector<Action> with;
    with.reserve(list.size() + list.size() / 2);
    for (const Action& a : list) {
      if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput) {
        with.push_back(a);
        with.back().kind = ActionKind::kRecompute;
      }
      with.push_back(a);
    }
    list = std::move(with);
  }
}

absl::Status CheckOneChunk(const SchemeParams& params) {
  if (params.chunks == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--chunks=", params.chunks, ": this scheme holds one stage a device; use --chunks=1"));
}

}  // namespace pipelab
