#include "experiments/commands/system_search.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "experiments/flags/flags.h"
#include "models/files/model_file.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);    // step_input.cc
ABSL_DECLARE_FLAG(std::string, kernels);  // step_input.cc
ABSL_FLAG(std::string, systems, "",
          "released systems whose options must have each configuration, with their kernels and "
          "state: megatron, "
          "torchtitan, several with commas, or all; any: all, and beside them what none can run; "
          "empty: no matter "
          "whether one can");

namespace pipelab {
namespace {

// One step's time and memory.
absl::StatusOr<std::pair<Nanoseconds, Bytes>> PriceOf(StepCache* cache, const StepConfig& config) {
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, PredictStep(cache, config));
  return std::make_pair(p.step_time, p.largest_device);
}

// The recipe that the system runs where its options say nothing.
absl::StatusOr<Recipe> DefaultsOf(const RecipeSystem& system, const GptConfig& model,
                                  NumberType type) {
  Recipe plain;
  plain.model = model;
  plain.type = type;
  // As mixed precision is everywhere, for systems that have a default of their own.
  if (type != NumberType::kFp32 && type != NumberType::kTf32) {
    plain.config.state.weights = 2;
    plain.config.state.gradients = type == NumberType::kFp16 ? 2 : 4;
  }
  PIPELAB_RETURN_IF_ERROR(SetStages(StagesOfTransformers({model.layers}), &plain));
  PIPELAB_ASSIGN_OR_RETURN(const Settings settings, system.write(plain));
  return system.read(settings.Text(), system.name, /*devices=*/1);
}

// InvalidArgument where the system's options do not say all of it.
absl::Status CheckRuns(const RecipeSystem& system, const Recipe& defaults, const StepConfig& config,
                       StepCache* cache) {
  PIPELAB_ASSIGN_OR_RETURN(const Recipe recipe, RecipeWith(defaults, config, cache));
  PIPELAB_ASSIGN_OR_RETURN(const Settings settings, system.write(recipe));
  PIPELAB_ASSIGN_OR_RETURN(const Recipe back,
                           system.read(settings.Text(), system.name, config.devices()));
  PIPELAB_ASSIGN_OR_RETURN(const auto own, PriceOf(cache, config));
  PIPELAB_ASSIGN_OR_RETURN(const auto read, PriceOf(cache, back.config));
  if (own == read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(system.name, " runs ", back.config.ToString(), " in its place"));
}

SearchRequest SpaceOfSystem(const RecipeSystem& system, const Recipe& defaults,
                            const SearchRequest& request) {
  const SearchRequest own = system.space(defaults);
  SearchRequest space = request;
  space.recompute = own.recompute;
  space.sequence = own.sequence;
  space.accept = own.accept;
  space.methods.clear();
  for (SearchMethod m : own.methods) {
    m.name = system.name;
    if (m.virtual_stages.size() > 1) m.virtual_stages.clear();  // all that there are
    m.overlap_tensor = {false, true};
    space.methods.push_back(m);
    if (!m.steady_overlap) continue;
    m.steady_overlap = false;  // messages run beside compute in warm-up and flush, too
    space.methods.push_back(std::move(m));
  }
  return space;
}

void AddRefusals(const SearchRefusals& more, SearchRefusals* all) {
  all->considered += more.considered;
  all->ordered += more.ordered;
  all->simulated += more.simulated;
  all->memory += more.memory;
  all->tensor += more.tensor;
  all->batch += more.batch;
  all->accept += more.accept;
  all->scheme += more.scheme;
  if (more.scheme > 0) all->scheme_reason = more.scheme_reason;
  if (more.memory > 0 && (all->nearest.empty() || more.least_memory < all->least_memory)) {
    all->nearest = more.nearest;
    all->least_memory = more.least_memory;
  }
}

}  // namespace

absl::StatusOr<SystemSearch> SystemSearch::OfFlags() {
  SystemSearch search;
  const std::string names = absl::GetFlag(FLAGS_systems);
  search.any_ = names == "any";
  if (search.any_ || names == "all") {
    for (const RecipeSystem& s : RecipeSystems()) search.systems_.push_back(&s);
  } else {
    for (const absl::string_view name : absl::StrSplit(names, ',', absl::SkipEmpty())) {
      const absl::StatusOr<const RecipeSystem*> system = FindRecipeSystem(name);
      if (!system.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("--systems=", names, ": '", name, "' ",
                                                       system.status().message(), ", all or any"));
      }
      search.systems_.push_back(*system);
    }
  }
  if (search.asked() && !FlagWasSet("kernels")) absl::SetFlag(&FLAGS_kernels, "megatron");
  return search;
}

absl::StatusOr<StateNumbers> SystemSearch::State(const StepModel& on) const {
  PIPELAB_ASSIGN_OR_RETURN(const GptConfig model,
                           FindLanguageModel("--model", absl::GetFlag(FLAGS_model)));
  PIPELAB_ASSIGN_OR_RETURN(const Recipe defaults, DefaultsOf(*systems_[0], model, on.type));
  return defaults.config.state;
}

absl::StatusOr<SearchResult> SystemSearch::Run(StepCache* cache,
                                               const SearchRequest& request) const {
  PIPELAB_ASSIGN_OR_RETURN(const GptConfig model,
                           FindLanguageModel("--model", absl::GetFlag(FLAGS_model)));
  SearchResult all;
  absl::Status nothing;
  for (const RecipeSystem* system : systems_) {
    PIPELAB_ASSIGN_OR_RETURN(const Recipe defaults,
                             DefaultsOf(*system, model, cache->model().type));
    SearchRequest space = SpaceOfSystem(*system, defaults, request);
    space.check = [&](const StepConfig& config) {
      return CheckRuns(*system, defaults, config, cache);
    };
    absl::StatusOr<SearchResult> found = Search(cache, space);
    if (absl::IsNotFound(found.status())) {
      nothing = found.status();
      continue;
    }
    PIPELAB_RETURN_IF_ERROR(found.status());
    std::move(found->best.begin(), found->best.end(), std::back_inserter(all.best));
    AddRefusals(found->refusals, &all.refusals);
    all.stopped = all.stopped || found->stopped;
    if (all.stopped) break;
  }
  if (all.best.empty()) return nothing;
  std::stable_sort(all.best.begin(), all.best.end(), [](const RankedStep& a, const RankedStep& b) {
    return a.step_time < b.step_time;
  });
  return all;
}

}  // namespace pipelab
