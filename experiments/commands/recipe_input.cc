#include "experiments/commands/recipe_input.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/option_checks.h"
#include "experiments/simulate/user_file.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/torchtitan_toml.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);          // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, cluster);  // step_input.cc
ABSL_FLAG(
    std::string, flags, "",
    "Megatron-LM's command line: a file (a script or YAML, too), the options themselves in quotes, "
    "or -, stdin");
ABSL_FLAG(std::string, launch, "",
          "which launch of a script with several counts (--flags): its number, from 1, or program");
ABSL_FLAG(std::string, set, "",
          "values of a script's variables and arguments (--flags): SIZE=small,NODES=4,1=8; they "
          "count in place of the script's");
ABSL_FLAG(std::string, toml, "", "torchtitan's configuration; -: stdin");
ABSL_FLAG(bool, strict, false, "refuses a recipe with options that are unknown here");

namespace pipelab {
namespace {

// Stages of a device that are looked at; a search leaves out those with more stages than layers.
const std::vector<int> kStagesPerDevice = {2, 3, 4, 5, 6, 8, 10, 12, 16, 20};

SearchMethod Method(std::vector<std::string> schemes, std::vector<int> virtual_stages,
                    std::vector<Sharding> shardings, const StepConfig& c) {
  SearchMethod method;
  method.schemes = std::move(schemes);
  method.virtual_stages = std::move(virtual_stages);
  method.shardings = std::move(shardings);
  method.overlap_data = c.overlap_data;
  method.overlap_tensor = {c.overlap_tensor};
  method.state = c.state;
  method.overlap_pipeline = false;
  return method;
}

SearchRequest PlainSpace(const Recipe& r) {
  SearchRequest space;
  space.recompute = {Recompute::kNone, Recompute::kBlocks};
  if (r.attention == AttentionImplementation::kUnfused)
    space.recompute.push_back(Recompute::kSelective);
  space.sequence = {false, true};
  space.max_context = 2 * r.config.context;
  if (HasExperts(r.model)) space.max_expert = 2 * r.config.experts;
  space.whole_experts = {r.config.whole_experts};
  space.context_exchanges = {r.config.context_exchange};
  space.dispatch = {r.config.dispatch};
  if (r.config.exchanges != Exchanges::kWaited) space.exchanges.push_back(r.config.exchanges);
  if (r.config.shards > 0) space.shards.push_back(r.config.shards);
  return space;
}

SearchMethod Fsdp(const Recipe& r) {
  SearchMethod fsdp =
      Method({"interleaved"}, {static_cast<int>(r.model.layers)}, {Sharding::kFully}, r.config);
  fsdp.residency = Residency::kMicroBatch;
  fsdp.pipeline = false;
  // Each block is gathered by itself (GatherByBlock).
  if (r.model.layers > 2) {
    fsdp.layout = absl::StrCat("Et|(t|)*", r.model.layers - 2, "t",
                               std::string(r.model.further_tokens, 'm'), "L");
  }
  return fsdp;
}

bool DividesTokens(const StepConfig& c) { return c.tensor == 1 || c.sequence_parallel; }

SearchRequest MegatronSpace(const Recipe& r) {
  const std::vector<Sharding> shardings = {Sharding::kReplicated, Sharding::kOptimizer};
  const StepConfig& c = r.config;
  SearchMethod one = Method({"1f1b"}, {0}, shardings, c), none = one;
  none.pipeline = false;
  none.shardings.push_back(Sharding::kGradients);
  SearchMethod interleaved = Method({"interleaved"}, kStagesPerDevice, shardings, c);
  interleaved.full_groups = true;
  const bool given = c.scheme == "interleaved";  // else Megatron-LM's default
  interleaved.overlap_pipeline = !given || c.overlap_pipeline;
  interleaved.steady_overlap = {!given || c.steady_overlap};
  SearchRequest space = PlainSpace(r);
  space.context_exchanges = {ContextExchange::kGather, ContextExchange::kRing};
  if (r.model.latent.rank == 0) space.context_exchanges.push_back(ContextExchange::kHeads);
  space.rebuilt_blocks = SomeRebuiltBlocks();
  space.methods = {one, interleaved, none, Fsdp(r)};
  if (HasExperts(r.model)) space.accept = DividesTokens;
  for (SearchMethod& m : space.methods) m.whole_messages = true;
  return space;
}

SearchRequest TorchtitanSpace(const Recipe& r) {
  const std::vector<Sharding> shardings = {Sharding::kReplicated, Sharding::kGradients};
  const StepConfig& c = r.config;
  SearchMethod none = Method({"1f1b"}, {0}, shardings, c);
  none.pipeline = false;
  SearchRequest space = PlainSpace(r);
  space.methods = {
      Method({"gpipe", "1f1b"}, {0}, shardings, c),
      Method({"interleaved", "breadth_first", "interleaved_zb1p"}, kStagesPerDevice, shardings, c),
      Method({"zbv", "dualpipev"}, {}, shardings, c), none, Fsdp(r)};
  for (SearchMethod& m : space.methods) m.split_head = m.published_order = true;
  space.accept = DividesTokens;
  return space;
}

absl::StatusOr<Recipe> ReadLaunch(absl::string_view text, absl::string_view what, int64_t devices) {
  return ReadMegatronFlags(text, what, devices,
                           {absl::GetFlag(FLAGS_launch), absl::GetFlag(FLAGS_set)});
}

constexpr RecipeSystem kSystems[] = {
    {"Megatron-LM", "megatron", &ReadLaunch, &MegatronSettings, &MegatronSpace, ""},
    {"torchtitan", "torchtitan", &ReadTorchtitanToml, &TorchtitanSettings, &TorchtitanSpace,
     "published runs took 12 to 54 % longer than predicted, 28 % in the median of 23"},
};

// Options in quotes, and no file's name.
bool IsText(absl::string_view value) {
  return absl::StartsWith(value, "--") || absl::StrContains(value, " --");
}

absl::StatusOr<ClusterSpec> ClusterFromFlags(NumberType type, absl::string_view what) {
  const std::string name = absl::GetFlag(FLAGS_cluster);
  if (name.empty()) {
    return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-h100");
  }
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadCluster("--cluster", name));
  PIPELAB_RETURN_IF_ERROR(TakeLaunches(&cluster));
  if (cluster.device.peaks.count(type) > 0) return cluster;
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": computes with ", NumberTypeName(type), ", which ", cluster.name,
                   " does not; nearest: ", NumberTypeName(NarrowestType(cluster.device))));
}

}  // namespace

absl::Span<const RecipeSystem> RecipeSystems() { return kSystems; }

StepConfig WithoutNeedlessKeys(StepConfig config) {
  if (config.pipeline == 1 || !config.has_equal_messages()) config.whole_messages = false;
  return config;
}

absl::StatusOr<std::vector<int>> StagesOf(const StepConfig& config, StepCache* cache) {
  if (config.has_schedule_file()) {
    PIPELAB_ASSIGN_OR_RETURN(const Step step, BuildStep(cache, config));
    return step.partition.stage_of_layer;
  }
  PIPELAB_ASSIGN_OR_RETURN(const int stages, NumStages(config.scheme, SchemeSizes(config)));
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition* cut, cache->PartitionOf(config, stages));
  return cut->stage_of_layer;
}

absl::StatusOr<Recipe> RecipeWith(const Recipe& recipe, StepConfig config, StepCache* cache) {
  Recipe other = recipe;
  other.config = config = WithoutNeedlessKeys(std::move(config));
  if (config.pipeline == 1) {
    PIPELAB_RETURN_IF_ERROR(SetStages(StagesOfTransformers({recipe.model.layers}), &other));
    PIPELAB_RETURN_IF_ERROR(GatherByBlock(&other));
    return other;
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> stage_of_layer, StagesOf(config, cache));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MegatronStage> stages,
                           MegatronStagesOf(cache->model().model->graph, stage_of_layer));
  PIPELAB_RETURN_IF_ERROR(SetStages(std::move(stages), &other));
  return other;
}

absl::StatusOr<StepConfig> ExportAndRead(const RecipeSystem& system, const Recipe& recipe,
                                         const StepConfig& config, StepCache* cache) {
  PIPELAB_ASSIGN_OR_RETURN(const Recipe written, RecipeWith(recipe, config, cache));
  PIPELAB_ASSIGN_OR_RETURN(const Settings settings, system.write(written));
  PIPELAB_ASSIGN_OR_RETURN(const Recipe read,
                           system.read(settings.Text(), system.name, config.devices()));
  return read.config;
}

SearchRequest SpaceOf(const RecipeSystem& system, const Recipe& recipe, StepCache* cache) {
  SearchRequest space = system.space(recipe);
  std::vector<SearchMethod> methods;
  for (const SearchMethod& method : space.methods) {
    for (const Sharding sharding : method.shardings) {
      StepConfig c = recipe.config;  // small, with two copies
      c.scheme = method.schemes[0];
      c.pipeline = method.pipeline ? 2 : 1;
      c.virtual_stages = method.virtual_stages.empty() ? 0 : method.virtual_stages[0];
      c.tensor = c.context = c.experts = 1;
      c.sequence_parallel = false;
      c.data = 2;
      c.micro_batches = 8;
      c.layout.clear();
      c.residency = method.residency;
      c.sharding = sharding;
      c.shards = 0;
      const absl::StatusOr<StepConfig> as = ExportAndRead(system, recipe, c, cache);
      SearchMethod own = method;
      if (as.ok()) own.state = as->state;
      own.shardings = {sharding};
      const auto like = std::find_if(methods.begin(), methods.end(), [&](const SearchMethod& m) {
        return m.schemes == own.schemes && m.residency == own.residency &&
               m.pipeline == own.pipeline && m.state == own.state;
      });
      if (like == methods.end()) {
        methods.push_back(own);
      } else {
        like->shardings.push_back(sharding);
      }
    }
  }
  space.methods = std::move(methods);
  return space;
}

absl::StatusOr<const RecipeSystem*> FindRecipeSystem(absl::string_view format) {
  for (const RecipeSystem& s : kSystems) {
    if (s.format == format) return &s;
  }
  return absl::InvalidArgumentError("must be megatron or torchtitan");
}

StepModel RecipeInput::Model() const {
  StepModel model = on->step();
  model.optimizer_tensors = recipe.optimizer_tensors;
  return model;
}

absl::StatusOr<RecipeInput> ReadRecipeInput() {
  const std::string flags = absl::GetFlag(FLAGS_flags), toml = absl::GetFlag(FLAGS_toml);
  if (flags.empty() == toml.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "evaluate: needs ", flags.empty() ? "" : "one of ",
        "--flags=FILE, Megatron-LM's command line, or --toml=FILE, torchtitan's configuration"));
  }
  for (const absl::string_view option : {"launch", "set"}) {
    if (flags.empty() && FlagWasSet(option)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", option, ": is for a script; give it with --flags=FILE"));
    }
  }
  RecipeInput input;
  const bool megatron = !flags.empty();
  input.system = &kSystems[megatron ? 0 : 1];
  const std::string option = megatron ? "--flags" : "--toml", value = megatron ? flags : toml;
  const bool is_text = megatron && IsText(value);
  input.what = is_text ? option : absl::StrCat(option, "=", value);
  std::string text = value;
  if (!is_text) {
    PIPELAB_ASSIGN_OR_RETURN(text, ReadUserFile(option, value));
  }
  int64_t devices = 0;
  if (FlagWasSet("devices")) {
    devices = absl::GetFlag(FLAGS_devices);
    PIPELAB_RETURN_IF_ERROR(CheckRange("--devices", devices, 1, 1 << 20));
  }
  absl::StatusOr<Recipe> recipe = input.system->read(text, input.what, devices);
  if (recipe.ok() && absl::GetFlag(FLAGS_strict) && !recipe->unknown.empty()) {
    recipe = RecipeError(input.what, ": ", absl::StrJoin(recipe->unknown, "; "));
  }
  // What is missing on the command line is no fault of the file.
  const auto missing = [&](absl::string_view option) {
    return absl::StartsWith(recipe.status().message(), option);
  };
  if (!recipe.ok() && !is_text && !missing("--devices") && !missing("--launch") &&
      !missing("--set")) {
    return FaultOfFile(recipe.status());
  }
  PIPELAB_ASSIGN_OR_RETURN(input.recipe, std::move(recipe));
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, ClusterFromFlags(input.recipe.type, input.what));
  cluster = GrownTo(input.recipe.config.devices(), std::move(cluster));
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, RecipeGraph(input.recipe));
  input.on = ModelOnCluster::Of(std::move(graph), std::move(cluster), input.recipe.type);
  return input;
}

}  // namespace pipelab
