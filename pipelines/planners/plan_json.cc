#include "pipelines/planners/plan_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostCount = int64_t{1} << 40;
constexpr std::array<PlanObjective, 9> kObjectives = {PlanObjective::kStageTime,
                                                      PlanObjective::kPipeDream,
                                                      PlanObjective::kMaxLoad,
                                                      PlanObjective::kVariance,
                                                      PlanObjective::kGraphStageTime,
                                                      PlanObjective::kBatchTime,
                                                      PlanObjective::kBatchTimeNoOverlap,
                                                      PlanObjective::kSliceTime,
                                                      PlanObjective::kGraphBatchTime};

json IdOf(const PlanProblem& problem, int v) {
  const std::string& id = problem.operators[v].id;
  int64_t number = 0;
  if (problem.integer_ids && absl::SimpleAtoi(id, &number)) return number;
  return id;
}

json StageJson(const PlanStage& stage, const PlanProblem& problem) {
  json layers = json::array(), recompute = json::array(), variants = json::array();
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    const int v = stage.layers[i];
    const PlanVariant& variant = problem.operators[v].variants.at(stage.tensor)[stage.variants[i]];
    layers.push_back(IdOf(problem, v));
    variants.push_back(variant.name);
    if (variant.recompute) recompute.push_back(IdOf(problem, v));
  }
  json object = {{"layers", std::move(layers)},
                 {"data", stage.data},
                 {"tensor", stage.tensor},
                 {"recompute", std::move(recompute)},
                 {"variants", std::move(variants)}};
  if (!stage.data_of_level.empty()) object["data_of_level"] = stage.data_of_level;
  if (stage.on_processor) object["on_processor"] = true;
  if (stage.micro_batch_size > 0) object["micro_batch_samples"] = stage.micro_batch_size;
  if (stage.in_flight > 0) object["in_flight"] = stage.in_flight;
  if (stage.first_device >= 0) object["first_device"] = stage.first_device;
  return object;
}

class Reader {
 public:
  explicit Reader(const PlanProblem& problem) : problem_(problem) {
    for (int v = 0; v < problem.size(); ++v) index_[problem.operators[v].id] = v;
  }

  absl::StatusOr<Plan> Read(const JsonObject& file) {
    Plan plan;
    plan.objective = problem_.objective;
    plan.state = PlanState::kFeasible;
    if (file.Has("planner")) {
      PIPELAB_ASSIGN_OR_RETURN(plan.planner, file.String("planner"));
    }
    if (file.Has("state")) {
      PIPELAB_ASSIGN_OR_RETURN(const std::string state, file.String("state"));
      const auto found = FindPlanState(state);
      if (!found.ok()) return file.Error("state", found.status().message());
      plan.state = *found;
    }
    PIPELAB_RETURN_IF_ERROR(ReadObjective(file, &plan));
    if (file.Has("group_size")) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t size, file.Integer("group_size", 1, 1 << 20));
      plan.kfkb = static_cast<int>(size);
    }
    for (const auto& [key, field] :
         {std::make_pair("lower_bound", &plan.lower_bound), {"peak_bytes", &plan.peak_bytes}}) {
      if (file.Has(key)) {
        PIPELAB_ASSIGN_OR_RETURN(*field, file.Number(key));
      }
    }
    if (file.Has("search_seconds")) {
      PIPELAB_ASSIGN_OR_RETURN(const double seconds, file.Number("search_seconds"));
      plan.search_time = absl::Seconds(seconds);
    }
    PIPELAB_RETURN_IF_ERROR(ReadSlices(file, &plan));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> stages, file.Objects("stages"));
    for (const JsonObject& object : stages) {
      PIPELAB_ASSIGN_OR_RETURN(PlanStage stage, ReadStage(object));
      plan.stages.push_back(std::move(stage));
    }
    return plan;
  }

 private:
  static absl::Status ReadObjective(const JsonObject& file, Plan* plan) {
    if (!file.Has("objective")) {
      plan->value = std::numeric_limits<double>::quiet_NaN();
      return absl::OkStatus();
    }
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, file.Object("objective"));
    PIPELAB_ASSIGN_OR_RETURN(const std::string name, object.String("name"));
    const auto* found = std::find_if(kObjectives.begin(), kObjectives.end(),
                                     [&](auto o) { return name == PlanObjectiveName(o); });
    if (found == kObjectives.end()) {
      return object.Error("name", "\"", name, "\" is not an objective of any planner");
    }
    plan->objective = *found;
    const absl::StatusOr<double> value = object.Number("value");
    // Null where there is no plan.
    if (!value.ok() && plan->state != PlanState::kInfeasible &&
        plan->state != PlanState::kTimeLimit) {
      return value.status();
    }
    plan->value = value.value_or(0);
    return absl::OkStatus();
  }

  static absl::Status ReadSlices(const JsonObject& file, Plan* plan) {
    if (!file.Has("slices")) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> all, file.Objects("slices"));
    for (const JsonObject& object : all) {
      PlanSlices slices;
      PIPELAB_ASSIGN_OR_RETURN(slices.micro_batch_size, object.Integer("samples", 1, kMostCount));
      PIPELAB_ASSIGN_OR_RETURN(const json* tokens, object.List("tokens"));
      for (const json& count : *tokens) {
        if (!count.is_number_integer() || count.get<int64_t>() < 1) {
          return object.Error("tokens", count.dump(), ": must be whole numbers from 1");
        }
        slices.tokens.push_back(count.get<int64_t>());
      }
      plan->slices.push_back(std::move(slices));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlanStage> ReadStage(const JsonObject& object) const {
    PlanStage stage;
    PIPELAB_ASSIGN_OR_RETURN(stage.layers, Ids(object, "layers"));
    if (stage.layers.empty()) return object.Error("layers", "a stage must have layers");
    for (const auto& [key, field] : {std::make_pair("data", &stage.data),
                                     {"micro_batch_samples", &stage.micro_batch_size},
                                     {"in_flight", &stage.in_flight}}) {
      if (!object.Has(key)) continue;
      PIPELAB_ASSIGN_OR_RETURN(*field, object.Integer(key, 1, kMostCount));
    }
    if (object.Has("tensor")) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor, object.Integer("tensor", 1, 1 << 30));
      stage.tensor = static_cast<int>(tensor);
    }
    if (object.Has("first_device")) {
      PIPELAB_ASSIGN_OR_RETURN(stage.first_device, object.Integer("first_device", 0, kMostCount));
    }
    if (object.Has("on_processor")) {
      PIPELAB_ASSIGN_OR_RETURN(stage.on_processor, object.Bool("on_processor"));
    }
    if (object.Has("data_of_level")) {
      PIPELAB_ASSIGN_OR_RETURN(const json* levels, object.List("data_of_level"));
      for (const json& level : *levels) {
        if (!level.is_number_integer() || level.get<int64_t>() < 1) {
          return object.Error("data_of_level", level.dump(), ": must be whole numbers from 1");
        }
        stage.data_of_level.push_back(level.get<int64_t>());
      }
    }
    PIPELAB_RETURN_IF_ERROR(ReadVariants(object, &stage));
    SortLayers(&stage);
    return stage;
  }

  absl::StatusOr<std::vector<int>> Ids(const JsonObject& object, absl::string_view key) const {
    PIPELAB_ASSIGN_OR_RETURN(const json* list, object.List(key));
    std::vector<int> layers;
    for (const json& id : *list) {
      if (!id.is_string() && !id.is_number_integer()) {
        return object.Error(key, id.dump(), ": must be the id of a layer");
      }
      const auto it = index_.find(id.is_string() ? id.get<std::string>() : id.dump());
      if (it == index_.end()) return object.Error(key, id.dump(), ": the input has no such layer");
      layers.push_back(it->second);
    }
    return layers;
  }

  // By name, or by who recomputes: then the first variant that does, or does not.
  absl::Status ReadVariants(const JsonObject& object, PlanStage* stage) const {
    std::set<int> recompute;
    if (object.Has("recompute")) {
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> layers, Ids(object, "recompute"));
      recompute.insert(layers.begin(), layers.end());
    }
    const json* names = nullptr;
    if (object.Has("variants")) {
      PIPELAB_ASSIGN_OR_RETURN(names, object.List("variants"));
      if (names->size() != stage->layers.size()) {
        return object.Error("variants", names->size(), " of them for ", stage->layers.size(),
                            " layers");
      }
    }
    for (size_t i = 0; i < stage->layers.size(); ++i) {
      const PlanOperator& o = problem_.operators[stage->layers[i]];
      const auto variants = o.variants.find(stage->tensor);
      if (variants == o.variants.end()) {
        return object.Error("tensor", stage->tensor, ": layer ", o.id, " has no such degree");
      }
      const auto variant = std::find_if(
          variants->second.begin(), variants->second.end(), [&](const PlanVariant& candidate) {
            if (names != nullptr) return json(candidate.name) == (*names)[i];
            return candidate.recompute == (recompute.count(stage->layers[i]) > 0);
          });
      if (variant == variants->second.end()) {
        return object.Error(names != nullptr ? "variants" : "recompute", "layer ", o.id,
                            " cannot be run so with tensor-parallel degree ", stage->tensor);
      }
      stage->variants.push_back(static_cast<int>(variant - variants->second.begin()));
    }
    return absl::OkStatus();
  }

  static void SortLayers(PlanStage* stage) {
    std::vector<std::pair<int, int>> both;
    for (size_t i = 0; i < stage->layers.size(); ++i) {
      both.emplace_back(stage->layers[i], stage->variants[i]);
    }
    std::sort(both.begin(), both.end());
    for (size_t i = 0; i < both.size(); ++i) {
      stage->layers[i] = both[i].first;
      stage->variants[i] = both[i].second;
    }
  }

  const PlanProblem& problem_;
  std::map<std::string, int> index_;
};

}  // namespace

std::string PlanToJson(const Plan& plan, const PlanProblem& problem) {
  json stages = json::array(), edges = json::array();
  for (const PlanStage& stage : plan.stages) stages.push_back(StageJson(stage, problem));
  for (const auto& [from, to] : StageEdges(problem, plan)) edges.push_back({from, to});
  json value = nullptr;
  if (plan.has_plan()) value = plan.value;
  json object = {{"planner", plan.planner},
                 {"state", PlanStateName(plan.state)},
                 {"objective",
                  {{"name", PlanObjectiveName(plan.objective)},
                   {"unit", ObjectiveUnit(problem, plan.objective)},
                   {"value", value}}},
                 {"lower_bound", plan.lower_bound},
                 {"stages", std::move(stages)},
                 {"edges", std::move(edges)},
                 {"group_size", plan.kfkb},
                 {"search_seconds", absl::ToDoubleSeconds(plan.search_time)},
                 {"peak_bytes", plan.peak_bytes}};
  for (const PlanSlices& slices : plan.slices) {
    object["slices"].push_back({{"samples", slices.micro_batch_size}, {"tokens", slices.tokens}});
  }
  return DumpJson(object);
}

absl::StatusOr<Plan> ParsePlan(absl::string_view text, absl::string_view what,
                               const PlanProblem& problem) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  return Reader(problem).Read(file);
}

}  // namespace pipelab
