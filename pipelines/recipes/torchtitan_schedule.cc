#include "pipelines/recipes/torchtitan_schedule.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/torchtitan_names.h"
#include "pipelines/recipes/torchtitan_stages.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class ScheduleReader {
 public:
  ScheduleReader(const TorchtitanKeys& keys, Recipe* recipe) : keys_(keys), r_(*recipe) {}

  absl::Status TakeSchedule() {
    StepConfig& c = r_.config;
    c.overlap_pipeline = false;
    const nlohmann::json* csv = keys_.Find("parallelism", "pipeline_parallel_schedule_csv");
    if (csv != nullptr && *csv != "") {
      return Error(
          "parallelism.pipeline_parallel_schedule_csv", csv->dump(),
          ": a schedule of its own is no part of this; nearest: pipelab simulate FILE.csv");
    }
    if (keys_.Find("parallelism", "pipeline_parallel_split_points") != nullptr) {
      return Error("parallelism.pipeline_parallel_split_points",
                   "is no longer valid in torchtitan; nearest: module_fqns_per_model_part");
    }
    PIPELAB_ASSIGN_OR_RETURN(const TorchtitanSchedule* schedule, FindSchedule());
    if (c.pipeline == 1) {
      return SetStages(StagesOfTransformers({r_.model.layers}), &r_);
    }
    c.scheme = std::string(schedule->scheme);
    // PyTorch splits the whole graph of a stage, and has one order whatever passes take.
    c.split_head = HasOption(c.scheme, kSplitBackward);
    c.published_order = HasOption(c.scheme, kPassTimes);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<MegatronStage> stages, StagesOfSchedule(*schedule));
    const int64_t each = static_cast<int64_t>(stages.size()) / c.pipeline;
    if (each * c.pipeline != static_cast<int64_t>(stages.size()) ||
        schedule->one_stage != (each == 1) || (schedule->v_shaped && each != 2)) {
      const int64_t right = schedule->one_stage ? c.pipeline : 2 * c.pipeline;
      return Error("parallelism.pipeline_parallel_schedule", schedule->name, ": ", stages.size(),
                   " stages on ", c.pipeline, " devices; nearest: ", right, " stages");
    }
    if (!schedule->one_stage && !schedule->v_shaped) c.virtual_stages = static_cast<int>(each);
    const absl::Status set = SetStages(std::move(stages), &r_);
    if (set.ok()) return set;
    return Error("parallelism.pipeline_parallel_degree", set.message());
  }

 private:
  template <typename... Parts>
  absl::Status Error(absl::string_view place, const Parts&... parts) const {
    return keys_.Error(place, parts...);
  }

  absl::StatusOr<const TorchtitanSchedule*> FindSchedule() const {
    const nlohmann::json* value = keys_.Find("parallelism", "pipeline_parallel_schedule");
    std::vector<absl::string_view> names;
    for (const TorchtitanSchedule& s : kTorchtitanSchedules) {
      if (value == nullptr ||
          (value->is_string() && absl::EqualsIgnoreCase(value->get<std::string>(), s.name))) {
        return &s;
      }
      names.push_back(s.name);
    }
    return Error("parallelism.pipeline_parallel_schedule", value->dump(), ": unknown",
                 NearestOrAll(value->is_string() ? value->get<std::string>() : "", names));
  }

  absl::StatusOr<std::vector<MegatronStage>> StagesOfSchedule(const TorchtitanSchedule& schedule) {
    const int64_t layers = r_.model.layers, pipeline = r_.config.pipeline;
    if (const nlohmann::json* parts = keys_.Find("parallelism", "module_fqns_per_model_part")) {
      absl::StatusOr<std::vector<MegatronStage>> stages = StagesOfModules(*parts, layers);
      if (stages.ok()) return stages;
      return Error("parallelism.module_fqns_per_model_part", stages.status().message());
    }
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t first,
        keys_.Integer("parallelism", "pipeline_parallel_first_stage_less_layers", 0, layers, 1));
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t last,
        keys_.Integer("parallelism", "pipeline_parallel_last_stage_less_layers", 0, layers, 1));
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t each,
        keys_.Integer("parallelism", "pipeline_parallel_layers_per_stage", 1, kMostLayers, 0));
    const auto stages_of = [all = layers + first + last](int64_t of_stage) {
      return (all + of_stage - 1) / of_stage;
    };
    int64_t stages = pipeline * (schedule.one_stage ? 1 : 2);
    if (each > 0) stages = stages_of(each);
    if (stages % pipeline != 0) {
      int64_t fewer = each;
      while (fewer > 1 && stages_of(fewer) % pipeline != 0) --fewer;
      return Error(
          "parallelism.pipeline_parallel_layers_per_stage", each, ": ", stages, " stages, which ",
          pipeline, " devices do not divide; nearest: ",
          stages_of(fewer) % pipeline == 0
              ? absl::StrCat(fewer)
              : absl::StrCat("pipeline_parallel_degree = ", NearestDivisor(pipeline, stages)));
    }
    absl::StatusOr<std::vector<MegatronStage>> made = TorchtitanStages(layers, stages, first, last);
    if (made.ok()) return made;
    return Error("parallelism.pipeline_parallel_degree", pipeline, ": ", made.status().message());
  }

  const TorchtitanKeys& keys_;
  Recipe& r_;
};

}  // namespace

absl::Status TakeTorchtitanSchedule(const TorchtitanKeys& keys, Recipe* recipe) {
  return ScheduleReader(keys, recipe).TakeSchedule();
}

}  // namespace pipelab
