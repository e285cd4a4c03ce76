#include "pipelines/ir/schedule_json.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "pipelines/ir/schedule_json_reader.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr const char* kKeys[] = {"scheme",
                                 "devices",
                                 "micro_batches",
                                 "chunks",
                                 "order",
                                 "stage_to_device",
                                 "edges",
                                 "slices",
                                 "stage_micro_batches",
                                 "eager_reductions",
                                 "forward_only",
                                 "weights_travel",
                                 "weight_group",
                                 "merges_passes",
                                 "prepares",
                                 "replay",
                                 "carried"};
constexpr ActionKind kJsonKinds[] = {ActionKind::kForward,       ActionKind::kBackward,
                                     ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
                                     ActionKind::kRecompute,     ActionKind::kStep,
                                     ActionKind::kOffload,       ActionKind::kReload};

}  // namespace

std::string ScheduleJsonReader::Brief(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
}

absl::StatusOr<Schedule> ScheduleJsonReader::Read() {
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
  if (replay_ > 0 && stages_ > 1 && s_.stages.ReplayWindow() == 0) {
    return Error("field 'replay': is ", replay_, ", and no edge reads the last outputs");
  }
  PIPELAB_RETURN_IF_ERROR(ReadCarried());
  PIPELAB_RETURN_IF_ERROR(ReadPrepares());
  s_.name = "json";
  if (root_.contains("scheme")) {
    PIPELAB_ASSIGN_OR_RETURN(s_.name, JsonField<std::string>(root_, "scheme", what_));
  }
  for (const auto& [key, flag] : {std::make_pair("eager_reductions", &s_.eager_reductions),
                                  std::make_pair("forward_only", &s_.forward_only),
                                  std::make_pair("weights_travel", &s_.weights_travel),
                                  std::make_pair("merges_passes", &s_.merges_passes)}) {
    if (!root_.contains(key)) continue;
    PIPELAB_ASSIGN_OR_RETURN(*flag, JsonField<bool>(root_, key, what_));
  }
  return std::move(s_);
}

absl::Status ScheduleJsonReader::CheckKeys() const {
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

absl::StatusOr<int64_t> ScheduleJsonReader::Number(const json& value, int64_t max,
                                                   absl::string_view where) const {
  if (!value.is_number_integer() || value < 0 || value > max) {
    return Error(where, ": is ", Brief(value), "; it must be a whole number from 0 to ", max);
  }
  return value.get<int64_t>();
}

absl::StatusOr<int64_t> ScheduleJsonReader::Size(const char* key, int64_t max,
                                                 int64_t otherwise) const {
  const auto it = root_.find(key);
  if (it == root_.end()) return otherwise;
  PIPELAB_ASSIGN_OR_RETURN(const int64_t size, Number(*it, max, absl::StrCat("field '", key, "'")));
  if (size < 1) return Error("field '", key, "': is 0; it must be at least 1");
  return size;
}

absl::Status ScheduleJsonReader::ReadOrder() {
  const auto it = root_.find("order");
  if (it == root_.end()) return Error("field 'order': missing; it must be one list per device");
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

absl::Status ScheduleJsonReader::ReadAction(const json& value, const std::string& where) {
  if (!value.is_array() || value.size() < 3 || value.size() > 6) {
    return Error(where, ": is ", Brief(value), "; it must be [\"F\", stage, micro_batch, replica]");
  }
  Action a;
  const auto kind = std::find_if(std::begin(kJsonKinds), std::end(kJsonKinds), [&](ActionKind k) {
    return value[0] == std::string(1, KindLetter(k));
  });
  if (kind == std::end(kJsonKinds)) {
    return Error(where, ": is ", Brief(value), "; its kind must be F, B, I, W, R, S, O or L");
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

absl::Status ScheduleJsonReader::ReadSizes() {
  const int64_t lists = static_cast<int64_t>(s_.order.size());
  PIPELAB_ASSIGN_OR_RETURN(const int64_t devices, Size("devices", kMaxInt16, lists));
  if (devices != lists)
    return Error("field 'devices': is ", devices, ", but 'order' has ", lists,
                 " lists; it must have one per device");
  int64_t last_stage = 0, last_micro_batch = 0;
  for (const std::vector<Action>& list : s_.order) {
    for (const Action& a : list) {
      last_stage = std::max<int64_t>(last_stage, a.stage);
      last_micro_batch = std::max<int64_t>(last_micro_batch, a.micro_batch);
    }
  }
  stages_ = last_stage + 1;
  PIPELAB_ASSIGN_OR_RETURN(micro_batches_, Size("micro_batches", kMaxInt32, last_micro_batch + 1));
  if (root_.contains("weight_group")) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t size, Size("weight_group", kMaxInt16, 0));
    s_.weight_group = static_cast<int>(size);
  }
  if (root_.contains("replay")) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t window, Size("replay", micro_batches_, 0));
    replay_ = static_cast<int>(window);
  }
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

absl::Status ScheduleJsonReader::ReadStageMicroBatches() {
  const auto it = root_.find("stage_micro_batches");
  if (it == root_.end()) return absl::OkStatus();
  if (!it->is_array() || static_cast<int64_t>(it->size()) < stages_) {
    return Error("field 'stage_micro_batches': is ", Brief(*it),
                 "; it must be a list of one number per stage, and 'order' has ", stages_,
                 " stages");
  }
  for (size_t stage = 0; stage < it->size(); ++stage) {
    const std::string where = absl::StrCat("stage_micro_batches[", stage, "]");
    PIPELAB_ASSIGN_OR_RETURN(const int64_t count, Number((*it)[stage], micro_batches_, where));
    if (count == 0 || (replay_ == 0 && micro_batches_ % count != 0)) {
      return Error(where, ": is ", count, "; it must ",
                   replay_ > 0 ? "be from 1 to " : "divide the largest number, which is ",
                   micro_batches_);
    }
    s_.micro_batches_of_stage.push_back(static_cast<int32_t>(count));
  }
  return absl::OkStatus();
}

PassRange ScheduleJsonReader::Smallest(const Action& a) const {
  const std::vector<int32_t>& counts = s_.micro_batches_of_stage;
  const int64_t count = counts.empty() ? micro_batches_ : counts[a.stage];
  if (a.micro_batch >= count) return {0, 0};
  const int size = replay_ > 0 ? 1 : static_cast<int>(micro_batches_ / count);
  return {a.micro_batch * size, size};
}

absl::StatusOr<Reads> ScheduleJsonReader::ReadGradient(const json& lag,
                                                       absl::string_view where) const {
  if (lag == "none") return Reads::None();
  if (!lag.is_number_integer() || lag < 1 || lag > micro_batches_) {
    return Error(where, ": its gradient is ", Brief(lag), " late; it must be 1 to ", micro_batches_,
                 " micro-batches, or \"none\"");
  }
  return Reads::Late(lag.get<int>());
}

absl::Status ScheduleJsonReader::ReadEdges() {
  const int stages = static_cast<int>(stages_);
  s_.stages = StageGraph::Chain(stages);
  if (replay_ > 0) s_.stages.SetReplayWindow(replay_);
  const auto it = root_.find("edges");
  if (it == root_.end()) return absl::OkStatus();
  if (!it->is_array()) return Error("field 'edges': is ", Brief(*it), "; it must be a list");
  std::vector<StageGraph::Edge> edges;
  for (size_t e = 0; e < it->size(); ++e) {
    const json& edge = (*it)[e];
    const std::string where = absl::StrCat("edges[", e, "]");
    const bool carries = edge.is_array() && edge.size() > 2 && edge.back() == "carries";
    if (!edge.is_array() || edge.size() < 2 || edge.size() > (carries ? 4 : 3)) {
      return Error(where, ": is ", Brief(edge), "; it must be [from, to] or [from, to, lag]");
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t from, Number(edge[0], stages - 1, where));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t to, Number(edge[1], stages - 1, where));
    edges.push_back({static_cast<int>(from), static_cast<int>(to)});
    if (replay_ > 0) edges.back().output = Reads::Replay(replay_);
    if (carries) edges.back().output = Reads::List();
    if (edge.size() == (carries ? 3 : 2)) continue;
    PIPELAB_ASSIGN_OR_RETURN(edges.back().gradient, ReadGradient(edge[2], where));
  }
  s_.stages = StageGraph::FromEdges(stages, std::move(edges));
  return absl::OkStatus();
}

absl::Status ScheduleJsonReader::ReadCarried() {
  const auto it = root_.find("carried");
  if (it == root_.end()) return absl::OkStatus();
  if (!it->is_array() || static_cast<int64_t>(it->size()) != micro_batches_) {
    return Error("field 'carried': is ", Brief(*it), "; it must be a list of ", micro_batches_,
                 " numbers, one per micro-batch");
  }
  for (size_t m = 0; m < it->size(); ++m) {
    if ((*it)[m] == -1) {
      s_.carried.push_back(-1);
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t source, Number((*it)[m], micro_batches_ - 1,
                                                          absl::StrCat("carried[", m, "]")));
    s_.carried.push_back(static_cast<int32_t>(source));
  }
  return absl::OkStatus();
}

absl::Status ScheduleJsonReader::ReadPrepares() {
  const auto it = root_.find("prepares");
  if (it == root_.end()) return absl::OkStatus();
  if (!it->is_array() || static_cast<int64_t>(it->size()) != stages_) {
    return Error("field 'prepares': is ", Brief(*it), "; it must be a list of ", stages_,
                 " numbers, 1 for each stage that prepares");
  }
  for (size_t s = 0; s < it->size(); ++s) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t prepares,
                             Number((*it)[s], 1, absl::StrCat("prepares[", s, "]")));
    s_.prepares.push_back(static_cast<uint8_t>(prepares));
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> ScheduleFromJson(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  return ScheduleJsonReader(root, what).Read();
}

}  // namespace pipelab
