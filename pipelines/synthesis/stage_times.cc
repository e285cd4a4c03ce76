#include "pipelines/synthesis/stage_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/json.h"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostTimedStages = 4096;
constexpr size_t kMostSlices = 256;
constexpr double kMostMicroseconds = 1e12;  // eleven days

class Reader {
 public:
  Reader(const nlohmann::json& json, absl::string_view what) : json_(json), what_(what) {}

  absl::StatusOr<StageTimes> Given() {
    PIPELAB_ASSIGN_OR_RETURN(const auto stages, JsonField<nlohmann::json>(json_, "stages", what_));
    if (!stages.is_array() || stages.empty() || stages.size() > kMostTimedStages) {
      return Error("stages", absl::StrCat("must be a list of 1 to ", kMostTimedStages, " stages"));
    }
    for (const auto& [key, value] : json_.items()) {
      if (key != "stages" && key != "hop") return Error(key, "is no field; there are stages, hop");
    }
    if (json_.contains("hop")) PIPELAB_RETURN_IF_ERROR(Take(json_, "hop", "", &times_.hop));
    for (size_t s = 0; s < stages.size(); ++s) {
      PIPELAB_RETURN_IF_ERROR(Stage(stages[s], absl::StrCat("stages[", s, "].")));
    }
    for (const auto* list : {&times_.kept, &times_.kept_for_weight, &times_.state}) {
      const size_t slices = list == &times_.state ? 1 : times_.slices;
      if (list->empty() || list->size() == stages.size() * slices) continue;
      return Error("stages", "say what they keep in all of them or in none");
    }
    return std::move(times_);
  }

  absl::StatusOr<StageTimes> OfRun() {
    const nlohmann::json& events = json_["traceEvents"];
    if (!events.is_array()) return Error("traceEvents", "must be a list");
    const auto other = json_.find("otherData");
    times_.measured = other != json_.end() && other->is_object() && other->contains("origin") &&
                      (*other)["origin"] == "measured";
    for (const nlohmann::json& event : events) {
      if (event.is_object()) PIPELAB_RETURN_IF_ERROR(Event(event));
    }
    if (passes_.empty()) return Error("traceEvents", "has no passes with a stage");
    return Medians();
  }

 private:
  absl::Status Error(absl::string_view field, absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": field '", field, "': ", why));
  }

  template <typename Q>
  absl::Status Take(const nlohmann::json& object, const std::string& key, const std::string& where,
                    Q* value) const {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, JsonField<std::string>(object, key, what_));
    const absl::StatusOr<Q> parsed = ParseQuantity<Q>(text);
    if (!parsed.ok()) return Error(where + key, parsed.status().message());
    *value = *parsed;
    return absl::OkStatus();
  }

  // One, or one for each slice.
  template <typename Q>
  absl::Status TakeSlices(const nlohmann::json& object, const std::string& key,
                          const std::string& where, std::vector<Q>* values) {
    const auto found = object.find(key);
    const bool list = found != object.end() && found->is_array();
    const size_t slices = list ? found->size() : 1;
    const bool first = !has_slices_;
    if (slices == 0 || slices > kMostSlices ||
        (!first && static_cast<int>(slices) != times_.slices)) {
      return Error(where + key,
                   absl::StrCat("has ", slices, " token slices; must be of ",
                                first ? absl::StrCat("1 to ", kMostSlices)
                                      : absl::StrCat(times_.slices, ", as the first one")));
    }
    has_slices_ = true;
    times_.slices = static_cast<int>(slices);
    for (size_t i = 0; i < slices; ++i) {
      const nlohmann::json one = list ? nlohmann::json({{key, (*found)[i]}}) : object;
      PIPELAB_RETURN_IF_ERROR(Take(one, key, where, &values->emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status Stage(const nlohmann::json& stage, const std::string& where) {
    if (!stage.is_object()) return Error(where, "must be an object with times");
    const std::map<std::string, std::vector<Nanoseconds>*> lengths = {
        {"forward", &times_.forward},
        {"backward_input", &times_.backward_input},
        {"backward_weight", &times_.backward_weight}};
    const std::map<std::string, std::vector<Bytes>*> sizes = {
        {"kept", &times_.kept},
        {"kept_for_weight", &times_.kept_for_weight},
        {"state", &times_.state}};
    for (const auto& [key, list] : lengths) {
      PIPELAB_RETURN_IF_ERROR(TakeSlices(stage, key, where, list));
    }
    for (const auto& [key, value] : stage.items()) {
      if (lengths.count(key) > 0) continue;
      const auto found = sizes.find(key);
      if (found == sizes.end()) return Error(where + key, "is no field of a stage");
      if (key == "state") {
        PIPELAB_RETURN_IF_ERROR(Take(stage, key, where, &times_.state.emplace_back()));
      } else {
        PIPELAB_RETURN_IF_ERROR(TakeSlices(stage, key, where, found->second));
      }
    }
    return absl::OkStatus();
  }

  // Microseconds of an event as nanoseconds; -1 where it has none that can be.
  static int64_t Time(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) return -1;
    const double us = found->get<double>();
    return us >= 0 && us <= kMostMicroseconds ? std::llround(us * 1000) : -1;
  }

  absl::Status Event(const nlohmann::json& event) {
    const std::string phase = Text(event, "ph");
    if (phase == "s" || phase == "f") {
      const auto id = event.find("id");
      if (id == event.end() || !id->is_number_integer()) return absl::OkStatus();
      const int64_t at = Time(event, "ts");
      if (phase == "s") {
        sent_[id->get<int64_t>()] = at;
      } else if (const auto sent = sent_.find(id->get<int64_t>()); sent != sent_.end()) {
        // It stands 1 ns before the producer's end.
        hops_.push_back(std::max<int64_t>(0, at - sent->second - 1));
      }
      return absl::OkStatus();
    }
    const auto args = event.find("args");
    if (phase != "X" || args == event.end() || !args->is_object() || !args->contains("stage")) {
      return absl::OkStatus();
    }
    const nlohmann::json& stage = (*args)["stage"];
    if (!stage.is_number_integer() || stage.get<int64_t>() < 0 ||
        stage.get<int64_t>() >= static_cast<int64_t>(kMostTimedStages)) {
      return Error("stage", absl::StrCat("of a pass must be from 0 to ", kMostTimedStages - 1));
    }
    const int64_t time = times_.measured ? Time(*args, "cpu_us") : Time(event, "dur");
    const std::string name = Text(event, "name");
    const size_t letter = name.find_first_not_of("0123456789");
    if (letter == std::string::npos) return absl::OkStatus();
    if (std::string("FBIWR").find(name[letter]) == std::string::npos) return absl::OkStatus();
    if (time < 0) return Error("dur", absl::StrCat("of '", name, "' must be a time"));
    const int64_t slice = SliceOf(name);
    if (slice >= static_cast<int64_t>(kMostSlices)) {
      return Error("name",
                   absl::StrCat("'", name, "': slices must be from 0 to ", kMostSlices - 1));
    }
    times_.slices = std::max(times_.slices, static_cast<int>(slice) + 1);
    passes_[{static_cast<int>(stage.get<int64_t>()), name[letter], slice}].push_back(time);
    return absl::OkStatus();
  }
  // "2F5.1": 1.
  static int64_t SliceOf(const std::string& name) {
    const size_t dot = name.find('.');
    int64_t slice = 0;
    for (size_t i = dot; i != std::string::npos && ++i < name.size();) {
      if (name[i] < '0' || name[i] > '9' || slice >= static_cast<int64_t>(kMostSlices)) break;
      slice = 10 * slice + name[i] - '0';
    }
    return slice;
  }
  static std::string Text(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }

  // An even number of times has the lower of the middle two.
  Nanoseconds Median(int stage, char kind, int64_t slice) {
    std::vector<int64_t>& all = passes_[{stage, kind, slice}];
    if (all.empty()) return Nanoseconds(0);
    std::sort(all.begin(), all.end());
    return Nanoseconds(all[(all.size() - 1) / 2]);
  }

  absl::StatusOr<StageTimes> Medians() {
    int stages = 0;
    for (const auto& [key, times] : passes_) stages = std::max(stages, std::get<0>(key) + 1);
    times_.whole_backward = passes_.count({0, 'B', 0}) > 0;
    const bool whole = times_.whole_backward;
    for (int part = 0; part < stages * times_.slices; ++part) {
      const int s = part / times_.slices, slice = part % times_.slices;
      for (const char kind : std::string(whole ? "FB" : "FIW")) {
        if (passes_.count({s, kind, slice}) > 0) continue;
        return Error("traceEvents", absl::StrCat("has no ", std::string(1, kind), " of stage ", s,
                                                 slice > 0 ? absl::StrCat(", slice ", slice) : "",
                                                 "; all stages must run the same kinds",
                                                 times_.slices > 1 ? " and slices" : ""));
      }
      times_.forward.push_back(Median(s, 'F', slice));
      times_.backward_input.push_back(Median(s, whole ? 'B' : 'I', slice));
      times_.backward_weight.push_back(whole ? Nanoseconds(0) : Median(s, 'W', slice));
    }
    if (!hops_.empty()) times_.hop = Nanoseconds(*std::min_element(hops_.begin(), hops_.end()));
    return std::move(times_);
  }

  const nlohmann::json& json_;
  const absl::string_view what_;
  StageTimes times_;
  bool has_slices_ = false;  // times_.slices is known
  // stage, kind, slice -> ns
  std::map<std::tuple<int, char, int64_t>, std::vector<int64_t>> passes_;
  std::map<int64_t, int64_t> sent_;  // message -> ns
  std::vector<int64_t> hops_;
};

}  // namespace

absl::StatusOr<StageTimes> ParseStageTimes(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, what));
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": must be an object with 'stages', or a Chrome trace"));
  }
  Reader reader(json, what);
  return json.contains("traceEvents") ? reader.OfRun() : reader.Given();
}

}  // namespace pipelab
