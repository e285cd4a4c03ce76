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

void FillUnits(Schedule* schedule) {
  Placement& placement = schedule->placement;
  const int replicas = placement.num_replicas(), stages = schedule->num_stages();
  const int unit = placement.num_devices, micro_batches = schedule->num_micro_batches;
  const int64_t units = (micro_batches + unit - 1) / unit;
  // An empty slot has stage -1. A unit's last backward is in slot 2S-1 + 2(P-1) at most.
  std::vector<std::vector<Action>> slots(
      placement.num_devices, std::vector<Action>(2 * stages * units + 2 * unit, Forward(-1, 0)));
  const auto put = [&](int replica, int64_t slot, const Action& a) {
    Action& place = slots[placement.groups[replica][a.stage][0]][slot];
    CHECK_EQ(place.stage, -1) << "two actions in one slot";
    place = a;
  };
  for (int64_t u = 0; u < units; ++u) {
    int m = static_cast<int>(u) * unit;
    const int count = std::min(unit, micro_batches - m);
    for (int r = 0; r < replicas; ++r) {
      const int part = count / replicas + (r < count % replicas ? 1 : 0);
      for (int i = 0; i < part; ++i, ++m) {
        placement.replica_of_micro_batch[m] = r;
        const int64_t begin = 2 * stages * u + 2 * i;
        for (int s = 0; s < stages; ++s) {
          put(r, begin + s, Forward(s, m));
          put(r, begin + 2 * stages - 1 - s, Backward(s, m));
        }
      }
    }
  }
  for (int d = 0; d < placement.num_devices; ++d) {
    for (const Action& a : slots[d]) {
      if (a.stage >= 0) schedule->order[d].push_back(a);
    }
  }
}

}  // namespace pipelab
