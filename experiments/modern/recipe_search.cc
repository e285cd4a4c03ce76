#include "experiments/modern/recipe_search.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "experiments/modern/modern_assumptions.h"
#include "experiments/modern/step_parts.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kSweep[] = "nanotron";
constexpr char kInterleaved[] = "interleaved";  // the method
constexpr int kMostContext = 8, kMostExpert = 64;

using Choices = std::vector<RecipeChoice>;

bool IsSweep(const RecipeChoice& choice) { return choice.system == kSweep; }

SearchMethod MethodWith(std::string name, std::string scheme, std::vector<int> virtual_stages,
                        std::vector<Sharding> shardings) {
  SearchMethod method;
  method.name = std::move(name);
  method.schemes = {std::move(scheme)};
  method.virtual_stages = std::move(virtual_stages);
  method.shardings = std::move(shardings);
  method.overlap_pipeline = false;  // as the recipes are predicted
  return method;
}

// 1F1B and interleaved 1F1B, with a pipeline and without.
void AddPipelines(const std::vector<Sharding>& shardings, bool interleaved, SearchRequest* search) {
  search->methods.push_back(MethodWith("1f1b", "1f1b", {0}, shardings));
  SearchMethod alone = MethodWith("no pipeline", "1f1b", {0}, shardings);
  alone.pipeline = false;
  search->methods.push_back(std::move(alone));
  if (!interleaved) return;
  std::vector<int> virtual_stages;
  for (int v = 2; v <= 16; ++v) virtual_stages.push_back(v);
  SearchMethod method = MethodWith(kInterleaved, "interleaved", virtual_stages, shardings);
  method.full_groups = true;
  search->methods.push_back(std::move(method));
}

// Each block's weights gathered before its passes (modern_prediction.h).
void AddFsdp(int64_t layers, SearchRequest* search) {
  SearchMethod method =
      MethodWith("fsdp", "interleaved", {static_cast<int>(layers)}, {Sharding::kFully});
  method.pipeline = false;
  method.residency = Residency::kMicroBatch;
  search->methods.push_back(std::move(method));
}

// In what the one loses most against the other.
absl::Status Explain(const StepModel& on, const StepPrediction& recipe, const StepPrediction& best,
                     RecipeChoice* choice) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepPart> own, SecondsOfParts(on, recipe));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepPart> other, SecondsOfParts(on, best));
  const StepPart most = MostLost(own, other);
  choice->component = most.name;
  choice->lost_seconds = most.seconds;
  return absl::OkStatus();
}

struct PublishedRow {
  const ModernRow* row;
  ModernStep step;
  bool fits = false;
  double seconds = 0;  // predicted
};

// Orders rows or recipes: those that fit first, the fastest first.
template <class Published>
bool RanksBefore(const Published& a, const Published& b) {
  return std::make_pair(!a.fits, a.seconds) < std::make_pair(!b.fits, b.seconds);
}

// The first is the fastest of those that fit.
absl::Status AddRecipes(const std::vector<PublishedRow>& rows, StepCache* cache,
                        RecipeChoice* choice) {
  for (const PublishedRow& published : rows) {
    PublishedRecipe recipe;
    recipe.id = published.row->id;
    recipe.config = published.step.config;
    recipe.config.layout.clear();
    absl::StatusOr<Step> step = BuildStep(cache, recipe.config);
    if (!step.ok()) continue;  // more stages than the blocks that a cut by time can part
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(*std::move(step)));
    recipe.seconds = ToSeconds(p.step_time);
    recipe.fits = p.fits;
    choice->recipes.push_back(std::move(recipe));
  }
  std::stable_sort(choice->recipes.begin(), choice->recipes.end(), RanksBefore<PublishedRecipe>);
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<RecipeChoice>> Choose(const std::vector<PublishedRow>& rows) {
  const ModernRow& row = *rows[0].row;
  const ModernStep& step = rows[0].step;
  PIPELAB_ASSIGN_OR_RETURN(const ModernStepModel model, ModernStepModel::Of(step));
  const StepModel on = model.On(step);
  StepCache cache(on);
  RecipeChoice choice;
  choice.system = row.group;
  choice.gpu = row.gpu;
  choice.precision = row.precision;
  choice.model = row.model;
  choice.gpus = row.gpus;
  choice.batch = row.batch;
  choice.tokens = row.tokens;
  PIPELAB_RETURN_IF_ERROR(AddRecipes(rows, &cache, &choice));
  if (choice.recipes.empty()) return absl::optional<RecipeChoice>();
  const absl::StatusOr<SearchResult> found = Search(&cache, RequestOf(row, step));
  if (absl::IsNotFound(found.status())) return absl::optional<RecipeChoice>();
  PIPELAB_RETURN_IF_ERROR(found.status());
  choice.best = found->best[0].config;
  choice.seconds = ToSeconds(found->best[0].step_time);
  const PublishedRecipe& fastest = choice.recipes[0];
  if (fastest.fits && !IsNear(choice, fastest)) {
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction recipe, PredictStep(&cache, fastest.config));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction best, PredictStep(&cache, choice.best));
    PIPELAB_RETURN_IF_ERROR(Explain(on, recipe, best, &choice));
  }
  return absl::optional<RecipeChoice>(std::move(choice));
}

// What is judged: every row that fits.
struct Count {
  int requests = 0, rows = 0, judged = 0, near = 0;
  double worst = 0;
  std::map<std::string, int> components;

  void Add(const RecipeChoice& choice) {
    ++requests;
    rows += static_cast<int>(choice.recipes.size());
    for (const PublishedRecipe& recipe : choice.recipes) {
      if (!recipe.fits) continue;
      ++judged;
      near += IsNear(choice, recipe);
      worst = std::max(worst, recipe.seconds / choice.seconds - 1);
    }
    if (!choice.component.empty()) ++components[choice.component];
  }
};

}  // namespace

SearchRequest RequestOf(const ModernRow& row, const ModernStep& step) {
  SearchRequest search;
  search.devices = row.gpus;
  search.batch = row.batch;
  search.together = true;
  search.max_tensor = static_cast<int>(NodeDevices(step.cluster));
  search.sequence = {false, true};
  search.accept = [](const StepConfig& c) { return c.sequence_parallel == (c.tensor > 1); };
  search.recompute = {Recompute::kNone, Recompute::kBlocks};
  if (row.group == "foundry") {
    search.max_tensor = 1;
    AddFsdp(step.model.layers, &search);
    search.methods.back().shardings = {Sharding::kFully, Sharding::kGradients};
  } else if (row.group == "titan") {
    AddFsdp(step.model.layers, &search);
    AddPipelines({Sharding::kGradients}, /*interleaved=*/true, &search);
  } else if (row.group == kSweep) {
    search.recompute = {Recompute::kNone};
    AddPipelines({Sharding::kReplicated, Sharding::kOptimizer}, /*interleaved=*/false, &search);
  } else {
    search.max_context = kMostContext;
    if (step.model.experts.experts > 0) search.max_expert = kMostExpert;
    search.dispatch = {step.config.dispatch};
    AddPipelines({Sharding::kReplicated, Sharding::kOptimizer}, /*interleaved=*/true, &search);
  }
  for (SearchMethod& method : search.methods) {
    method.overlap_tensor = {OverlapsTensor(row)};
    method.state = StateNumbersOf(row);
    // With several stages a device, as StepOfRow has it.
    if (!IsMegatronCore(row) || method.name != kInterleaved) continue;
    method.overlap_pipeline = true;
    method.steady_overlap = {true};
  }
  return search;
}

absl::StatusOr<Choices> SearchForRecipes(const std::vector<ModernResult>& all,
                                         const std::vector<ModernModel>& models,
                                         const ModernMachines& machines) {
  using Key =
      std::tuple<std::string, std::string, std::string, std::string, int64_t, int64_t, int64_t>;
  std::map<Key, std::vector<PublishedRow>> requests;
  for (const ModernResult& r : all) {
    if (!r.why_not.empty()) continue;
    const ModernRow& row = *r.row;
    PIPELAB_ASSIGN_OR_RETURN(ModernStep step, StepOfRow(row, models, machines));
    // A search finds no better ones than these: it has neither.
    if (step.adapters.has_value() || !step.recomputed.empty()) continue;
    std::vector<PublishedRow>& published =
        requests[{row.group, row.gpu, row.precision, row.model, row.gpus, row.batch, row.tokens}];
    const PublishedRow own = {&row, std::move(step), r.fits(), r.seconds};
    if (row.group != kSweep || published.empty()) {
      published.push_back(own);
    } else if (RanksBefore(own, published[0])) {
      published[0] = own;
    }
  }
  Choices choices;
  for (const auto& [key, rows] : requests) {
    PIPELAB_ASSIGN_OR_RETURN(absl::optional<RecipeChoice> choice, Choose(rows));
    if (choice.has_value()) choices.push_back(*std::move(choice));
  }
  return choices;
}

Table RecipeTable(const Choices& choices) {
  Table t("recipes", "Published recipes within 10 % of the best that a search finds");
  t.AddKey("source");
  t.AddKey("gpu", "GPU");
  const Origin computed = Origin::kComputed;
  t.AddColumn({"requests", "requests", "", "", computed, 0});
  t.AddColumn({"rows", "rows", "", "", computed, 0});
  t.AddColumn({"judged", "judged", "", "", computed, 0});
  t.AddColumn({"near", "within 10 %", "near", "", Origin::kSimulated, 0});
  t.AddColumn({"worst", "slowest, above the best", "worst", "%", Origin::kSimulated, 1});
  t.AddColumn({"lost", "requests by where most is lost", "lost in", "", computed, 0});
  std::map<std::pair<std::string, std::string>, Count> counts;
  for (const RecipeChoice& choice : choices) counts[{choice.system, choice.gpu}].Add(choice);
  for (const auto& [key, count] : counts) {
    std::string lost;
    for (const auto& [component, times] : count.components) {
      absl::StrAppend(&lost, lost.empty() ? "" : ", ", times, " ", component);
    }
    t.AddRow({Label(key.first), Label(key.second), Computed(count.requests), Computed(count.rows),
              Computed(count.judged), Simulated(count.near),
              count.judged == 0 ? Missing("none fits by the memory model")
                                : Simulated(ToPercent(count.worst)),
              lost.empty() ? Missing("none is beyond 10 %") : Computed(lost)});
  }
  t.AddNote(
      "A request is a model, GPUs, batch, length and precision. Rows that do not fit by the memory "
      "model are not judged. Of nanotron's sweep the fastest layout of a request alone is looked "
      "at.");
  return t;
}

Table FasterTable(const Choices& choices) {
  Table t("faster_recipes", "Requests whose fastest published recipe is more than 10 % slower");
  t.AddKey("request");
  t.AddColumn({"above", "above the search's best", "above", "%", Origin::kSimulated, 1});
  t.AddColumn({"component", "most is lost in", "", "", Origin::kComputed, 0});
  t.AddColumn({"lost", "lost there", "", "% of the best step", Origin::kSimulated, 1});
  t.AddColumn({"published", "published", "", "", Origin::kComputed, 0});
  t.AddColumn({"best", "search's best", "best", "", Origin::kComputed, 0});
  for (const RecipeChoice& choice : choices) {
    if (choice.component.empty()) continue;
    const PublishedRecipe& recipe = choice.recipes[0];
    t.AddRow({Label(absl::StrCat(choice.system, " ", choice.model, ", ", choice.gpus, " ",
                                 choice.gpu, ", ", choice.precision, ", batch ", choice.batch,
                                 " of ", choice.tokens)),
              Simulated(ToPercent(recipe.seconds / choice.seconds - 1)), Computed(choice.component),
              Simulated(ToPercent(choice.lost_seconds / choice.seconds)),
              Computed(recipe.config.ToString()), Computed(choice.best.ToString())});
  }
  return t;
}

Claim RecipeClaim(const Choices& choices) {
  Claim c =
      OwnClaim("modern.recipes",
               "published recipes are within 10 % of the best that a search finds, predicted");
  Count published, sweep;
  for (const RecipeChoice& choice : choices) (IsSweep(choice) ? sweep : published).Add(choice);
  if (published.judged == 0) {
    NotMade(&c, "no row could be predicted");
    return c;
  }
  const double share = static_cast<double>(published.near) / published.judged;
  std::string found = absl::StrFormat("%d of %d rows", published.near, published.judged);
  if (sweep.judged > 0) {
    absl::StrAppendFormat(&found, "; of nanotron's sweep the best layout of %d of %d requests",
                          sweep.near, sweep.judged);
  }
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(share), found);
  MetIf(&c, share >= 0.8, "at least 80 % of the rows of all sources but nanotron's",
        "recipes beyond lose most in micro-batches of one sample, in collectives of T, C and E, "
        "and in recomputation that the memory model does not ask for; see the table of faster "
        "recipes");
  return c;
}

}  // namespace pipelab
