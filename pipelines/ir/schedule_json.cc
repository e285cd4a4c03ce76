#include "pipelines/ir/schedule_json.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/ir/from_rows.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMaxInt16 = std::numeric_limits<int16_t>::max();
constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxReplicas = 256;
constexpr const char* kKeys[] = {
    "scheme", "devices", "micro_batches",       "chunks",          "order", "stage_to_device",
    "edges",  "slices",  "stage_micro_batches", "eager_reductions"};
constexpr ActionKind kKinds[] = {ActionKind::kForward,       ActionKind::kBackward,
                                 ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
                                 ActionKind::kRecompute,     ActionKind::kStep};

std::string Brief(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
}

class Reader {
 public:
  Reader(const json& root, absl::string_view what) : root_(root), what_(what) {}

  absl::StatusOr<Schedule> Read() {
    PIPELAB_RETURN_IF_ERROR(CheckKeys());
    PIPELAB_RETURN_IF_ERROR(ReadOrder());
    PIPELAB_RETURN_IF_ERROR(ReadSizes());
    PIPELAB_RETURN_IF_ERROR(ReadPlacement());
    const int64_t counts = static_cast<int64_t>(s_.micro_batches_of_stage.size());
    if (counts > 0 && counts != stages_) {
      return Error("field 'stage_micro_batches': has ", counts, " numbers; there are ", stages_,
                   " stages");
    }
    PIPELAB_RETURN_IF_ERROR(ReadEdges());
    s_.name = "json";
    if (root_.contains("scheme")) {
      PIPELAB_ASSIGN_OR_RETURN(s_.name, JsonField<std::string>(root_, "scheme", what_));
    }
    if (root_.contains("eager_reductions")) {
      PIPELAB_ASSIGN_OR_RETURN(s_.eager_reductions,
                               JsonField<bool>(root_, "eager_reductions", what_));
    }
    return std::move(s_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", parts...));
  }

  absl::Status CheckKeys() const {
    if (!root_.is_object()) return Error("a schedule is an object, not ", Brief(root_));
    for (const auto& item : root_.items()) {
      const std::string& key = item.key();
      if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
        return Error("field '", absl::Utf8SafeCEscape(key.substr(0, 40)), "': unknown; known are ",
                     absl::StrJoin(kKeys, ", "));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Number(const json& value, int64_t max, absl::string_view where) const {
    if (!value.is_number_integer() || value < 0 || value > max) {
      return Error(where, ": is ", Brief(value), "; it must be a whole number from 0 to ", max);
    }
    return value.get<int64_t>();
  }

  // The field, or `otherwise` where it is missing.
  absl::StatusOr<int64_t> Size(const char* key, int64_t max, int64_t otherwise) const {
    const auto it = root_.find(key);
    if (it == root_.end()) return otherwise;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t size,
                             Number(*it, max, absl::StrCat("field '", key, "'")));
    if (size < 1) return Error("field '", key, "': is 0; it must be at least 1");
    return size;
  }

  absl::Status ReadOrder() {
    const auto it = root_.find("order");
    if (it == root_.end()) return Error("field 'order': missing; it must be a list a device");
    if (!it->is_array()) return Error("field 'order': is ", Brief(*it), "; it must be a list");
    if (it->empty() || static_cast<int64_t>(it->size()) > kMaxInt16) {
      return Error("field 'order': has ", it->size(), " lists; it must be 1 to ", kMaxInt16);
    }
    for (size_t d = 0; d < it->size(); ++d) {
      const json& list = (*it)[d];
      if (!list.is_array()) return Error("order[", d, "]: is ", Brief(list), "; it must be a list");
      s_.order.emplace_back();
      replica_.emplace_back();
      for (size_t i = 0; i < list.size(); ++i) {
        PIPELAB_RETURN_IF_ERROR(ReadAction(list[i], absl::StrCat("order[", d, "][", i, "]")));
      }
      actions_ += static_cast<int64_t>(list.size());
    }
    if (actions_ == 0) return Error("field 'order': has no action");
    return absl::OkStatus();
  }

  absl::Status ReadAction(const json& value, const std::string& where) {
    if (!value.is_array() || value.size() < 3 || value.size() > 6) {
      return Error(where, ": is ", Brief(value),
                   "; it must be [\"F\", stage, micro_batch, replica]");
    }
    Action a;
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](ActionKind k) {
      return value[0] == std::string(1, KindLetter(k));
    });
    if (kind == std::end(kKinds)) {
      return Error(where, ": is ", Brief(value), "; its kind must be F, B, I, W, R or S");
    }
    a.kind = *kind;
    int64_t rest[6] = {0, 0, 0, -1, 0, 0};
    const int64_t max[6] = {0, kMaxInt16, kMaxInt32, kMaxReplicas - 1, kMaxInt16, kMaxInt16};
    const char* name[6] = {"", "stage", "micro-batch", "replica", "slice", "version"};
    for (size_t i = 1; i < value.size(); ++i) {
      PIPELAB_ASSIGN_OR_RETURN(rest[i],
                               Number(value[i], max[i], absl::StrCat(where, ": its ", name[i])));
    }
    a.stage = static_cast<int16_t>(rest[1]);
    a.micro_batch = static_cast<int32_t>(rest[2]);
    a.slice = static_cast<int16_t>(rest[4]);
    a.version = static_cast<int16_t>(rest[5]);
    s_.order.back().push_back(a);
    // A step belongs to a stage, whatever the micro-batch.
    replica_.back().push_back(a.kind == ActionKind::kStep ? -1 : static_cast<int>(rest[3]));
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    const int64_t lists = static_cast<int64_t>(s_.order.size());
    PIPELAB_ASSIGN_OR_RETURN(const int64_t devices, Size("devices", kMaxInt16, lists));
    if (devices != lists)
      return Error("field 'devices': is ", devices, ", but 'order' has ", lists,
                   " lists; it must have one a device");
    int64_t last_stage = 0, last_micro_batch = 0;
    for (const std::vector<Action>& list : s_.order) {
      for (const Action& a : list) {
        last_stage = std::max<int64_t>(last_stage, a.stage);
        last_micro_batch = std::max<int64_t>(last_micro_batch, a.micro_batch);
      }
    }
    stages_ = last_stage + 1;
    PIPELAB_ASSIGN_OR_RETURN(micro_batches_,
                             Size("micro_batches", kMaxInt32, last_micro_batch + 1));
    PIPELAB_RETURN_IF_ERROR(ReadStageMicroBatches());
    // Each stage and micro-batch needs actions: this bounds all tables by the text. Where stages
    // are placed explicitly, the validator names an action of one too many.
    if (!root_.contains("stage_to_device") && stages_ > actions_) {
      return Error("stage ", last_stage, ": 'order' has ", actions_,
                   " actions, too few for that many stages");
    }
    if (micro_batches_ > actions_)
      return Error("field 'micro_batches': is ", micro_batches_, ", but 'order' has ", actions_,
                   " actions");
    PIPELAB_ASSIGN_OR_RETURN(const int64_t slices, Size("slices", kMaxInt16, 1));
    PIPELAB_RETURN_IF_ERROR(Size("chunks", kMaxInt16, 1).status());
    s_.num_slices = static_cast<int>(slices);
    s_.num_micro_batches = static_cast<int>(micro_batches_);
    s_.placement.num_devices = static_cast<int>(devices);
    return absl::OkStatus();
  }

  absl::Status ReadStageMicroBatches() {
    const auto it = root_.find("stage_micro_batches");
    if (it == root_.end()) return absl::OkStatus();
    if (!it->is_array() || static_cast<int64_t>(it->size()) < stages_) {
      return Error("field 'stage_micro_batches': is ", Brief(*it),
                   "; it must be a list of a number a stage, and 'order' has ", stages_, " stages");
    }
    for (size_t stage = 0; stage < it->size(); ++stage) {
      const std::string where = absl::StrCat("stage_micro_batches[", stage, "]");
      PIPELAB_ASSIGN_OR_RETURN(const int64_t count, Number((*it)[stage], micro_batches_, where));
      if (count == 0 || micro_batches_ % count != 0) {
        return Error(where, ": is ", count, "; it must divide the largest number, which is ",
                     micro_batches_);
      }
      s_.micro_batches_of_stage.push_back(static_cast<int32_t>(count));
    }
    return absl::OkStatus();
  }

  // The smallest micro-batches that an action's has; none where it is out of range.
  MicroBatchRange Smallest(const Action& a) const {
    const std::vector<int32_t>& counts = s_.micro_batches_of_stage;
    const int64_t count = counts.empty() ? micro_batches_ : counts[a.stage];
    if (a.micro_batch >= count) return {0, 0};
    const int size = static_cast<int>(micro_batches_ / count);
    return {a.micro_batch * size, (a.micro_batch + 1) * size};
  }

  absl::Status ReadPlacement() {
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

  // What actions say of their micro-batch's replica; -1 where none says it.
  absl::Status ReplicasFromActions() {
    std::vector<int>& of = s_.placement.replica_of_micro_batch;
    of.assign(micro_batches_, -1);
    for (size_t d = 0; d < s_.order.size(); ++d) {
      for (size_t i = 0; i < s_.order[d].size(); ++i) {
        const Action& a = s_.order[d][i];
        const int replica = replica_[d][i];
        const MicroBatchRange smallest = Smallest(a);
        if (replica < 0 || smallest.begin == smallest.end) continue;
        most_replicas_ = std::max(most_replicas_, replica + 1);
        for (int m = smallest.begin; m < smallest.end; ++m) {
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

  absl::StatusOr<std::vector<int>> ReadGroup(const json& value, const std::string& where) const {
    std::vector<int> group;
    const json one = value.is_array() ? value : json::array({value});
    for (const json& device : one) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t d, Number(device, kMaxInt16, where));
      group.push_back(static_cast<int>(d));
    }
    return group;
  }

  absl::Status ReadStageToDevice(const json& value) {
    if (!value.is_array() || value.empty()) {
      return Error("field 'stage_to_device': is ", Brief(value),
                   "; it must be a list a replica of a device a stage");
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
                     "; it must be a list of a device a stage, as long as the others");
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

  // Micro-batches whose actions name no replica get the one on whose devices most of them stand.
  void ReplicasThatFit() {
    std::vector<int>& of = s_.placement.replica_of_micro_batch;
    const int replicas = s_.placement.num_replicas();
    if (replicas > 1 && std::find(of.begin(), of.end(), -1) != of.end()) {
      std::vector<int32_t> fits(micro_batches_ * replicas, 0);
      for (size_t d = 0; d < s_.order.size(); ++d) {
        for (const Action& a : s_.order[d]) {
          if (a.stage >= stages_) continue;
          const MicroBatchRange smallest = Smallest(a);
          for (int r = 0; r < replicas; ++r) {
            const std::vector<int>& group = s_.placement.groups[r][a.stage];
            const bool fit =
                std::find(group.begin(), group.end(), static_cast<int>(d)) != group.end();
            for (int m = smallest.begin; m < smallest.end; ++m) fits[m * replicas + r] += fit;
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

  absl::Status PlacementFromRows() {
    absl::StatusOr<Schedule> from_rows = ScheduleFromRows(s_.order, "field 'order'");
    if (!from_rows.ok()) return Error(from_rows.status().message());
    s_.placement = std::move(from_rows->placement);
    s_.placement.replica_of_micro_batch.resize(micro_batches_, 0);
    return absl::OkStatus();
  }

  // A stage of a replica is where its first action stands; the validator names those elsewhere.
  absl::Status GroupsFromActions() {
    std::vector<int>& of = s_.placement.replica_of_micro_batch;
    std::replace(of.begin(), of.end(), -1, 0);
    if (most_replicas_ * stages_ > 2 * actions_) {
      return Error("replica ", most_replicas_ - 1, ": 'order' has ", actions_,
                   " actions, too few for that many replicas");
    }
    s_.placement.groups.assign(most_replicas_, std::vector<std::vector<int>>(stages_));
    for (size_t d = 0; d < s_.order.size(); ++d) {
      for (const Action& a : s_.order[d]) {
        const MicroBatchRange smallest = Smallest(a);
        if (smallest.begin == smallest.end || a.kind == ActionKind::kStep) continue;
        std::vector<int>& group = s_.placement.groups[of[smallest.begin]][a.stage];
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

  absl::Status ReadEdges() {
    const int stages = static_cast<int>(stages_);
    s_.stages = StageGraph::Chain(stages);
    const auto it = root_.find("edges");
    if (it == root_.end()) return absl::OkStatus();
    if (!it->is_array()) return Error("field 'edges': is ", Brief(*it), "; it must be a list");
    std::vector<StageGraph::Edge> edges;
    for (size_t e = 0; e < it->size(); ++e) {
      const json& edge = (*it)[e];
      const std::string where = absl::StrCat("edges[", e, "]");
      if (!edge.is_array() || edge.size() != 2) {
        return Error(where, ": is ", Brief(edge), "; it must be [from, to]");
      }
      PIPELAB_ASSIGN_OR_RETURN(const int64_t from, Number(edge[0], stages - 1, where));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t to, Number(edge[1], stages - 1, where));
      edges.push_back({static_cast<int>(from), static_cast<int>(to)});
    }
    s_.stages = StageGraph::FromEdges(stages, std::move(edges));
    return absl::OkStatus();
  }

  const json& root_;
  const absl::string_view what_;
  Schedule s_;
  std::vector<std::vector<int>> replica_;  // [device][position] as given; -1 where it is not
  int64_t actions_ = 0, stages_ = 0, micro_batches_ = 0;
  int most_replicas_ = 0;  // 1 + the largest that an action names
};

}  // namespace

absl::StatusOr<Schedule> ScheduleFromJson(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  return Reader(root, what).Read();
}

}  // namespace pipelab
