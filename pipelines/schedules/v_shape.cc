#include "pipelines/schedules/v_shape.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {

Schedule ZigZagPipeline(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (int s = 0; s < schedule.num_stages(); ++s) {
    const int pass = s / params.devices, step = s % params.devices;
    schedule.placement.groups[0][s] = {pass % 2 == 0 ? step : params.devices - 1 - step};
  }
  return schedule;
}

absl::Status CheckTwoChunks(const SchemeParams& params) {
  if (params.chunks == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--chunks=", params.chunks, ": this scheme holds two stages a device, a V; use --chunks=2"));
}

void FillGapsWithWeights(Schedule* schedule, int max_activations) {
  struct Device {
    std::vector<Action> fixed, order;
    size_t next = 0;     // in fixed
    size_t next_weight;  // in order: W come in the order of I, so this looks for the oldest I
    int inputs = 0, weights = 0, held = 0;
  };
  const int num_devices = schedule->num_devices();
  std::vector<Device> devices(num_devices);
  int64_t left = 0;
  for (int d = 0; d < num_devices; ++d) {
    Device& device = devices[d];
    device.fixed = std::move(schedule->order[d]);
    device.next_weight = 0;
    for (const Action& a : device.fixed) left += a.kind == ActionKind::kBackwardInput ? 2 : 1;
    device.order.reserve(device.fixed.size() + device.fixed.size() / 2);
  }
  const EventIndex index(*schedule);
  std::vector<char> over(index.size(), false);
  const auto ready = [&](const Action& a) {
    bool all = true;
    ForEachDependency(*schedule, /*recomputed=*/false, a,
                      [&](const Event& e) { all &= over[index(e)] != 0; });
    return all;
  };
  std::vector<Action> slot;  // what runs in this slot, over at its end
  while (left > 0) {
    slot.clear();
    for (Device& device : devices) {
      const bool more = device.next < device.fixed.size();
      const bool full = more && device.fixed[device.next].kind == ActionKind::kForward &&
                        device.held >= max_activations;
      if (more && !full && ready(device.fixed[device.next])) {
        const Action& a = device.fixed[device.next++];
        (a.kind == ActionKind::kForward ? device.held : device.inputs) += 1;
        device.order.push_back(a);
      } else if (device.weights < device.inputs) {
        while (device.order[device.next_weight].kind != ActionKind::kBackwardInput) {
          ++device.next_weight;
        }
        const Action& input = device.order[device.next_weight++];
        const Action weight = BackwardWeight(input.stage, input.micro_batch);
        ++device.weights;
        --device.held;
        device.order.push_back(weight);
      } else {
        continue;
      }
      slot.push_back(device.order.back());
    }
    CHECK(!slot.empty()) << "the order of F and I cannot run, " << left << " actions left";
    left -= static_cast<int64_t>(slot.size());
    for (const Action& a : slot) {
      ForEachResult(a, [&](const Event& e) { over[index(e)] = true; });
    }
  }
  for (int d = 0; d < num_devices; ++d) schedule->order[d] = std::move(devices[d].order);
}

}  // namespace pipelab
