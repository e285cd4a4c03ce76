// Chimera (Li and Hoefler, SC 2021): two replicas of the model, one pipeline down the devices and
// one up.
//
// In a unit of P micro-batches half go each way. With forwards and backwards of equal length, the
// i-th micro-batch of a direction is in stage s at slot s + 2i forward and 2P - 1 - s + 2i
// backward. On device d the stages of the two directions are d and P - 1 - d, whose slots have
// different parity (P is even), and a unit's forwards of one direction end before the other's
// backwards begin, so no two actions of a device share a slot: the slots are the order. Units
// follow one another every 2P slots (direct concatenation), where the same argument holds between
// the backwards of one unit and the forwards of the next.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckEven(const char* option, int value, const char* reason) {
  if (value % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", value, ": must be even (", reason,
                   "); nearest: ", value > 1 ? absl::StrCat(value - 1, " or ") : "", value + 1));
}

}  // namespace

absl::StatusOr<Schedule> MakeChimera(const SchemeParams& params) {
  PIPELAB_RETURN_IF_ERROR(CheckOneChunk(params));
  const int devices = params.devices;
  PIPELAB_RETURN_IF_ERROR(
      CheckEven("--devices", devices, "the two directions take turns on a device"));
  PIPELAB_RETURN_IF_ERROR(
      CheckEven("--micro_batches", params.micro_batches, "half of them go each way"));
  Schedule schedule = LoopedPipeline(params);
  std::vector<std::vector<int>> up;
  for (int stage = 0; stage < devices; ++stage) up.push_back({devices - 1 - stage});
  schedule.placement.groups.push_back(up);

  std::vector<std::vector<std::pair<int64_t, Action>>> slots(devices);
  for (int unit = 0; unit < params.micro_batches; unit += devices) {
    const int half =
        std::min(devices, params.micro_batches - unit) / 2;  // the last unit may be short
    for (int direction = 0; direction < 2; ++direction) {
      for (int i = 0; i < half; ++i) {
        const int m = unit + direction * half + i;
        schedule.placement.replica_of_micro_batch[m] = direction;
        for (int stage = 0; stage < devices; ++stage) {
          std::vector<std::pair<int64_t, Action>>& list =
              slots[schedule.placement.groups[direction][stage][0]];
          const int64_t begin = int64_t{2} * unit + 2 * i;
          list.emplace_back(begin + stage, Forward(stage, m));
          list.emplace_back(begin + 2 * devices - 1 - stage, Backward(stage, m));
        }
      }
    }
  }
  for (int d = 0; d < devices; ++d) {
    std::sort(slots[d].begin(), slots[d].end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < slots[d].size(); ++i) {
      CHECK(i == 0 || slots[d][i - 1].first != slots[d][i].first) << "two actions in one slot";
      schedule.order[d].push_back(slots[d][i].second);
    }
  }
  return schedule;
}

}  // namespace pipelab
