#include "pipelines/schedules/schemes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {

Schedule LoopedPipeline(const SchemeParams& params) {
  const int stages = params.devices * params.virtual_stages;
  std::vector<int> device_of_stage(stages);
  for (int s = 0; s < stages; ++s) device_of_stage[s] = s % params.devices;
  Schedule schedule;
  schedule.stages = StageGraph::Chain(stages);
  schedule.placement = Placement::Single(device_of_stage, params.devices, params.micro_batches);
  schedule.num_micro_batches = params.micro_batches;
  schedule.order.resize(params.devices);
  return schedule;
}

Schedule ZigZagPipeline(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (int s = 0; s < schedule.num_stages(); ++s) {
    const int pass = s / params.devices, step = s % params.devices;
    schedule.placement.groups[0][s] = {pass % 2 == 0 ? step : params.devices - 1 - step};
  }
  return schedule;
}

absl::StatusOr<std::vector<int>> MicroBatchGroups(const SchemeParams& params) {
  const int m = params.micro_batches, devices = params.devices, size = params.group_size;
  if (size == 0) {
    std::vector<int> groups(std::max(1, m / devices));
    const int count = static_cast<int>(groups.size());
    for (int i = 0; i < count; ++i) groups[i] = m / count + (i < m % count ? 1 : 0);
    return groups;
  }
  if (size < devices) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--group_size=", size, ": a group is back at a device for its next stage only after all ",
        devices, " devices; use at least --devices=", devices));
  }
  std::vector<int> groups(m / size, size);
  const int rest = m % size;
  if (rest >= devices || (groups.empty() && rest > 0)) {
    groups.push_back(rest);
  } else if (rest > 0) {
    groups.back() += rest;
  }
  return groups;
}

int LargestGroup(int devices, int micro_batches, int group_size) {
  const int count = std::max(1, micro_batches / devices);
  if (group_size == 0) return (micro_batches + count - 1) / count;
  if (group_size >= micro_batches) return micro_batches;
  const int rest = micro_batches % group_size;
  return rest < devices ? group_size + rest : group_size;
}

absl::Status CheckGroups(const SchemeParams& params) { return MicroBatchGroups(params).status(); }

std::vector<Action> DepthFirst(const SchemeParams& params, const std::vector<int>& groups,
                               ActionKind kind, int device) {
  std::vector<Action> actions;
  actions.reserve(static_cast<size_t>(params.micro_batches) * params.virtual_stages);
  int begin = 0;
  for (int group : groups) {
    for (int i = 0; i < params.virtual_stages; ++i) {
      const int chunk = kind == ActionKind::kForward ? i : params.virtual_stages - 1 - i;
      const auto stage = static_cast<int16_t>(chunk * params.devices + device);
      for (int m = begin; m < begin + group; ++m) actions.push_back({kind, stage, m, 0, 0});
    }
    begin += group;
  }
  return actions;
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
    Action a = inputs[i];
    a.kind = ActionKind::kBackwardWeight;
    return a;
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

void InsertRecompute(Schedule* schedule, const std::vector<bool>& stages) {
  for (std::vector<Action>& list : schedule->order) {
    std::vector<Action> with;
    with.reserve(list.size() + list.size() / 2);
    for (const Action& a : list) {
      const bool returns = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
      if (returns && (stages.empty() || stages[a.stage])) {
        with.push_back(a);
        with.back().kind = ActionKind::kRecompute;
      }
      with.push_back(a);
    }
    list = std::move(with);
  }
}

void ReplaceDevicesByGroups(int size, Schedule* schedule) {
  if (size == 1) return;
  Placement& placement = schedule->placement;
  for (auto& replica : placement.groups) {
    for (std::vector<int>& group : replica) {
      std::vector<int> larger;
      for (int d : group) {
        for (int i = 0; i < size; ++i) larger.push_back(d * size + i);
      }
      group = std::move(larger);
    }
  }
  std::vector<std::vector<Action>> order;
  for (const std::vector<Action>& list : schedule->order) order.insert(order.end(), size, list);
  schedule->order = std::move(order);
  placement.num_devices *= size;
}

}  // namespace pipelab
