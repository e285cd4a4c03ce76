// Which devices hold which stages, and which replica a micro-batch is of.
#include <algorithm>
#include <utility>
#include <vector>

#include "pipelines/ir/device_lists.h"
#include "pipelines/ir/schedule_json_reader.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status ScheduleJsonReader::ReadPlacement() {
  PIPELAB_RETURN_IF_ERROR(ReplicasFromActions());
  const auto it = root_.find("stage_to_device");
  if (it != root_.end()) {
    PIPELAB_RETURN_IF_ERROR(ReadStageToDevice(*it));
    ReplicasThatFit();
    return absl::OkStatus();
  }
  if (!s_.micro_batches_of_stage.empty()) most_replicas_ = std::max(most_replicas_, 1);
  if (most_replicas_ == 0) return PlacementFromRows();
  return GroupsFromActions();
}

absl::Status ScheduleJsonReader::ReplicasFromActions() {
  std::vector<int>& of = s_.placement.replica_of_micro_batch;
  of.assign(micro_batches_, -1);
  for (size_t d = 0; d < s_.order.size(); ++d) {
    for (size_t i = 0; i < s_.order[d].size(); ++i) {
      const Action& a = s_.order[d][i];
      const int replica = replica_[d][i];
      const PassRange smallest = Smallest(a);
      if (replica < 0 || smallest.empty()) continue;
      most_replicas_ = std::max(most_replicas_, replica + 1);
      for (int m : smallest) {
        if (of[m] >= 0 && of[m] != replica) {
          return Error("device ", d, ", position ", i, ": ", ToString(a), " is of replica ",
                       replica, ", but micro-batch ", m, " is of replica ", of[m],
                       " before; number micro-batches over all replicas");
        }
        of[m] = replica;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> ScheduleJsonReader::ReadGroup(const json& value,
                                                               const std::string& where) const {
  std::vector<int> group;
  const json one = value.is_array() ? value : json::array({value});
  for (const json& device : one) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t d, Number(device, kMaxInt16, where));
    group.push_back(static_cast<int>(d));
  }
  return group;
}

absl::Status ScheduleJsonReader::ReadStageToDevice(const json& value) {
  if (!value.is_array() || value.empty()) {
    return Error("field 'stage_to_device': is ", Brief(value),
                 "; it must be one list per replica, of one device per stage");
  }
  const json replicas = value[0].is_array() ? value : json::array({value});
  if (static_cast<int64_t>(replicas.size()) > kMaxReplicas) {
    return Error("field 'stage_to_device': has ", replicas.size(), " replicas; at most ",
                 kMaxReplicas);
  }
  for (size_t r = 0; r < replicas.size(); ++r) {
    if (!replicas[r].is_array() || replicas[r].empty() ||
        replicas[r].size() != replicas[0].size()) {
      return Error("stage_to_device[", r, "]: is ", Brief(replicas[r]),
                   "; it must be a list of one device per stage, as long as the others");
    }
    auto& groups = s_.placement.groups.emplace_back();
    for (size_t stage = 0; stage < replicas[r].size(); ++stage) {
      PIPELAB_ASSIGN_OR_RETURN(
          std::vector<int> group,
          ReadGroup(replicas[r][stage], absl::StrCat("stage_to_device[", r, "][", stage, "]")));
      groups.push_back(std::move(group));
    }
  }
  stages_ = static_cast<int64_t>(replicas[0].size());
  if (most_replicas_ > s_.placement.num_replicas()) {
    return Error("field 'stage_to_device': has ", s_.placement.num_replicas(),
                 " replicas, but an action is of replica ", most_replicas_ - 1);
  }
  return absl::OkStatus();
}

void ScheduleJsonReader::ReplicasThatFit() {
  std::vector<int>& of = s_.placement.replica_of_micro_batch;
  const int replicas = s_.placement.num_replicas();
  if (replicas > 1 && std::find(of.begin(), of.end(), -1) != of.end()) {
    std::vector<int32_t> fits(micro_batches_ * replicas, 0);
    for (size_t d = 0; d < s_.order.size(); ++d) {
      for (const Action& a : s_.order[d]) {
        if (a.stage >= stages_) continue;
        const PassRange smallest = Smallest(a);
        for (int r = 0; r < replicas; ++r) {
          const std::vector<int>& group = s_.placement.groups[r][a.stage];
          const bool fit =
              std::find(group.begin(), group.end(), static_cast<int>(d)) != group.end();
          for (int m : smallest) fits[m * replicas + r] += fit;
        }
      }
    }
    for (int64_t m = 0; m < micro_batches_; ++m) {
      if (of[m] >= 0) continue;
      const auto first = fits.begin() + m * replicas;
      of[m] = static_cast<int>(std::max_element(first, first + replicas) - first);
    }
  }
  std::replace(of.begin(), of.end(), -1, 0);
}

absl::Status ScheduleJsonReader::PlacementFromRows() {
  absl::StatusOr<Schedule> from_rows = ScheduleFromDeviceLists(s_.order, "field 'order'");
  if (!from_rows.ok()) return Error(from_rows.status().message());
  s_.placement = std::move(from_rows->placement);
  s_.placement.replica_of_micro_batch.resize(micro_batches_, 0);
  return absl::OkStatus();
}

absl::Status ScheduleJsonReader::GroupsFromActions() {
  std::vector<int>& of = s_.placement.replica_of_micro_batch;
  std::replace(of.begin(), of.end(), -1, 0);
  if (most_replicas_ * stages_ > 2 * actions_) {
    return Error("replica ", most_replicas_ - 1, ": 'order' has ", actions_,
                 " actions, too few for that many replicas");
  }
  s_.placement.groups.assign(most_replicas_, std::vector<std::vector<int>>(stages_));
  for (size_t d = 0; d < s_.order.size(); ++d) {
    for (const Action& a : s_.order[d]) {
      const PassRange smallest = Smallest(a);
      if (smallest.empty() || a.kind == ActionKind::kStep) continue;
      std::vector<int>& group = s_.placement.groups[of[smallest.first]][a.stage];
      if (group.empty()) group.push_back(static_cast<int>(d));
    }
  }
  for (int r = 0; r < most_replicas_; ++r) {
    for (int64_t stage = 0; stage < stages_; ++stage) {
      if (!s_.placement.groups[r][stage].empty()) continue;
      return Error("no device has an action of stage ", stage, " of replica ", r);
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
