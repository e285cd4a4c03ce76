#include "experiments/commands/system_search.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "experiments/flags/flags.h"
#include "models/files/model_file.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);    // step_input.cc
ABSL_DECLARE_FLAG(std::string, kernels);  // step_input.cc
ABSL_FLAG(
    std::string, systems, "",
    "released systems whose options must have each configuration, with their kernels and "
    "state: megatron, torchtitan, several with commas, or all; any: all, and beside them what "
    "none can run; none: no matter whether one can; empty: megatron, but none with --schemes "
    "and for models that no system has");

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

// True if all keys and the stage of each layer are the same: one step, which has one price.
absl::StatusOr<bool> SameStep(StepConfig a, StepConfig b, StepCache* cache) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> stages, StagesOf(a, cache));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> others, StagesOf(b, cache));
  for (StepConfig* c : {&a, &b}) {
    c->layout.clear();
    c->cut = CutRule::kBlocks;
  }
  return stages == others && a.ToString() == b.ToString();
}

// InvalidArgument where the system's options do not say all of it.
absl::Status CheckRuns(const RecipeSystem& system, const Recipe& defaults, const StepConfig& config,
                       StepCache* cache) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig read, ExportAndRead(system, defaults, config, cache));
  PIPELAB_ASSIGN_OR_RETURN(const bool same, SameStep(WithoutNeedlessKeys(config), read, cache));
  if (same) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const auto own, PriceOf(cache, config));
  PIPELAB_ASSIGN_OR_RETURN(const auto as_read, PriceOf(cache, read));
  if (own == as_read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(system.name, " runs ", read.ToString(), " in its place"));
}

// Leaves the values of a key that the system's options have: those of which `with` makes a
// configuration that is exported and read back as it is; all of them where it makes none of any.
template <typename T>
void KeepSaid(const RecipeSystem& system, const Recipe& defaults, StepCache* cache,
              absl::FunctionRef<StepConfig(T)> with, std::vector<T>* values) {
  std::vector<T> said;
  for (const T value : *values) {
    const absl::StatusOr<StepConfig> e = ExportAndRead(system, defaults, with(value), cache);
    if (e.ok() && SameStep(WithoutNeedlessKeys(with(value)), *e, cache).value_or(false))
      said.push_back(value);
  }
  if (!said.empty()) *values = std::move(said);
}

// The request keeps what the options can say, so that a search does not come to the rest in vain.
void KeepSaid(const RecipeSystem& system, const Recipe& defaults, StepCache* cache,
              SearchRequest* space) {
  StepConfig two = defaults.config;  // of all that a key asks for
  two.scheme = "interleaved";
  two.pipeline = two.virtual_stages = two.tensor = two.data = 2;
  two.micro_batches = 4;
  two.sequence_parallel = true;
  StepConfig experts = two, context = two;
  experts.experts = 2;
  context.context = 2;
  const auto keep = [&](auto member, const StepConfig& of, auto* values) {
    using Value = typename std::decay_t<decltype(*values)>::value_type;
    const auto with = [&](Value value) {
      StepConfig c = of;
      c.*member = value;
      return c;
    };
    KeepSaid<Value>(system, defaults, cache, with, values);
  };
  keep(&StepConfig::context_exchange, context, &space->context_exchanges);
  keep(&StepConfig::whole_experts, experts, &space->whole_experts);
  keep(&StepConfig::dispatch, experts, &space->dispatch);
  keep(&StepConfig::exchanges, experts, &space->exchanges);
  for (SearchMethod& m : space->methods) keep(&StepConfig::overlap_tensor, two, &m.overlap_tensor);
}

SearchRequest SpaceOfSystem(const RecipeSystem& system, const Recipe& defaults,
                            const SearchRequest& request, StepCache* cache) {
  SearchRequest own = SpaceOf(system, defaults, cache);
  SearchRequest space = request;
  space.recompute = own.recompute;
  space.sequence = own.sequence;
  space.accept = own.accept;
  space.methods.clear();
  for (SearchMethod m : own.methods) {
    m.name = system.name;
    if (m.virtual_stages.size() > 1) {  // all that there are
      m.least_virtual_stages = m.virtual_stages.front();
      m.virtual_stages.clear();
    }
    m.overlap_tensor = {false, true};
    // Messages may run beside compute in warm-up and flush, too.
    if (m.steady_overlap.front()) m.steady_overlap.push_back(false);
    space.methods.push_back(std::move(m));
  }
  KeepSaid(system, defaults, cache, &space);
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

absl::StatusOr<SearchResult> SearchSystem(const RecipeSystem& system, const Recipe& recipe,
                                          StepCache* cache, const SearchRequest& request) {
  SearchRequest space = SpaceOfSystem(system, recipe, request, cache);
  space.check = [&](const StepConfig& config) { return CheckRuns(system, recipe, config, cache); };
  return Search(cache, space);
}

absl::StatusOr<SystemSearch> SystemSearch::OfFlags() {
  SystemSearch search;
  std::string names = absl::GetFlag(FLAGS_systems);
  search.by_default_ = names.empty();
  if (names.empty()) {
    const bool has_model =
        FindLanguageModel("--model", absl::GetFlag(FLAGS_model)).ok() && !FlagWasSet("schemes");
    names = has_model ? "megatron" : "none";
  }
  search.any_ = names == "any";
  if (names == "none") return search;
  if (search.any_ || names == "all") {
    for (const RecipeSystem& s : RecipeSystems()) search.systems_.push_back(&s);
  } else {
    for (const absl::string_view name : absl::StrSplit(names, ',', absl::SkipEmpty())) {
      const absl::StatusOr<const RecipeSystem*> system = FindRecipeSystem(name);
      if (!system.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("--systems=", names, ": '", name, "' ",
                                                       system.status().message(),
                                                       ", all, any or none"));
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
    absl::StatusOr<SearchResult> found = SearchSystem(*system, defaults, cache, request);
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
  SortByTime(&all.best);
  return all;
}

}  // namespace pipelab
