#include "pipelines/schedules/bidirectional.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status CheckEven(const char* option, int value, const char* reason) {
  if (value % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", value, ": must be even (", reason,
                   "); nearest: ", value > 1 ? absl::StrCat(value - 1, " or ") : "", value + 1));
}

absl::Status CheckBothWays(const SchemeParams& params) {
  PIPELAB_RETURN_IF_ERROR(
      CheckEven("--devices", params.devices, "the two directions take turns on a device"));
  return CheckEven("--micro_batches", params.micro_batches, "half of them go each way");
}

void AddUpwardReplica(Schedule* schedule) {
  std::vector<std::vector<int>> up = schedule->placement.groups[0];
  for (std::vector<int>& group : up) {
    for (int& device : group) device = schedule->num_devices() - 1 - device;
  }
  schedule->placement.groups.push_back(std::move(up));
}

void FillUnits(Schedule* schedule, int forwards_per_slot, int together) {
  Placement& placement = schedule->placement;
  const int replicas = placement.num_replicas(), stages = schedule->num_stages();
  const int unit = placement.num_devices * forwards_per_slot;
  const int micro_batches = schedule->num_micro_batches;
  const int64_t units = (micro_batches + unit - 1) / unit;
  const int64_t period = int64_t{1 + forwards_per_slot} * stages;
  // An empty place has stage -1. A unit's last backward is in slot 2S-1 + 2 (unit - 1) at most.
  std::vector<std::vector<Action>> places(
      placement.num_devices,
      std::vector<Action>(forwards_per_slot * (period * (units - 1) + 2 * stages + 2 * unit),
                          Forward(-1, 0)));
  const auto put = [&](int replica, int64_t place, const Action& a) {
    Action& empty = places[placement.groups[replica][a.stage][0]][place];
    CHECK_EQ(empty.stage, -1) << "two actions in one slot";
    empty = a;
  };
  for (int64_t u = 0; u < units; ++u) {
    int m = static_cast<int>(u) * unit;
    const int count = std::min(unit, micro_batches - m);
    for (int r = 0; r < replicas; ++r) {
      const int wholes = count / together;
      const int part = together * (wholes / replicas + (r < wholes % replicas ? 1 : 0));
      for (int i = 0; i < part; ++i, ++m) {
        placement.replica_of_micro_batch[m] = r;
        const int64_t forward = period * u + 2 * (i / forwards_per_slot);
        const int64_t backward = period * u + 2 * stages - 1 + 2 * i;
        for (int s = 0; s < stages; ++s) {
          put(r, forwards_per_slot * (forward + s) + i % forwards_per_slot, Forward(s, m));
          put(r, forwards_per_slot * (backward - s), Backward(s, m));
        }
      }
    }
  }
  for (int d = 0; d < placement.num_devices; ++d) {
    for (const Action& a : places[d]) {
      if (a.stage >= 0) schedule->order[d].push_back(a);
    }
  }
}

}  // namespace pipelab
