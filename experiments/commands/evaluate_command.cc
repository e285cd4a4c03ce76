// pipelab evaluate: what another system's command line or file costs, and what near it is better.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/recipe_input.h"
#include "experiments/commands/recipe_path.h"
#include "experiments/commands/step_figures.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/option_checks.h"
#include "experiments/flags/output.h"
#include "experiments/report/table.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/search/neighbours.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(int, top);               // search_command.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc

namespace pipelab {
namespace {

constexpr int kNeighbours = 5;
// Configurations to simulate for each schedule, which differ in stages alone; the best is printed.
constexpr int kWays = 8;

// A configuration near the recipe's.
struct Neighbour {
  StepPrediction prediction;
  std::string changes;  // of the recipe's settings
};

struct Evaluation {
  RecipeInput input;
  StepPrediction prediction;
  StepBreakdown breakdown;
  bool searched = false;  // for neighbours
  std::vector<Neighbour> neighbours;
  RecipePath path;

  const Recipe& recipe() const { return input.recipe; }
  double gain(const Neighbour& n) const {
    return ToMs(prediction.step_time) / ToMs(n.prediction.step_time) - 1;
  }
};

absl::StatusOr<std::vector<Neighbour>> FindNeighbours(const Evaluation& e, StepCache* cache,
                                                      Bytes memory, int top) {
  const RecipeSystem& system = *e.input.system;
  PIPELAB_ASSIGN_OR_RETURN(const Settings before, system.write(e.recipe()));
  SearchRequest space = SpaceOf(system, e.recipe(), cache);
  space.max_tensor = static_cast<int>(NodeDevices(*cache->model().cluster));
  space.memory = memory;
  space.top = kWays * (top + 1);  // the recipe itself may be among them
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<RankedStep> best,
                           NeighboursOf(cache, e.recipe().config, space));
  std::vector<Neighbour> neighbours;
  std::set<std::string> kinds;
  for (const RankedStep& r : best) {
    StepConfig kind = r.config;
    kind.virtual_stages = kind.group_size = 0;
    if (static_cast<int>(neighbours.size()) == top || !kinds.insert(kind.ToString()).second) {
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const Recipe other, RecipeWith(e.recipe(), r.config, cache));
    PIPELAB_ASSIGN_OR_RETURN(const Settings after, system.write(other));
    Neighbour n;
    n.changes = ChangesBetween(before, after);
    if (n.changes.empty()) continue;
    PIPELAB_ASSIGN_OR_RETURN(n.prediction, PredictStep(cache, other.config));
    neighbours.push_back(std::move(n));
  }
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const Neighbour& a, const Neighbour& b) {
                     return a.prediction.step_time < b.prediction.step_time;
                   });
  return neighbours;
}

std::vector<std::string> Assumptions(const Recipe& r) {
  const auto fused = [](bool is) { return is ? "fused" : "unfused"; };
  std::vector<std::string> all = {
      absl::StrCat("kernels and kept activations: Megatron-LM's, attention ",
                   fused(r.attention == AttentionImplementation::kFused), ", loss ",
                   r.loss == LossImplementation::kTransformerEngine
                       ? "Transformer Engine's"
                       : fused(r.loss == LossImplementation::kFused)),
      absl::StrCat("state of a parameter: weight ", r.config.state.weights, " bytes, gradient ",
                   r.config.state.gradients, ", the optimizer's ",
                   r.config.state.OptimizerBytes(r.optimizer_tensors),
                   r.config.state.narrow() ? " with a copy of the weight" : ""),
      absl::StrCat("messages of the pipeline: ",
                   !r.config.overlap_pipeline ? "nothing runs beside them"
                   : r.config.steady_overlap  ? "beside compute, but in warm-up and flush"
                                              : "beside compute")};
  all.insert(all.end(), r.assumptions.begin(), r.assumptions.end());
  return all;
}

// torchtitan's lists of modules take pages; JSON has them.
std::string WithoutLists(const std::string& changes) {
  const size_t begin = changes.find("[["), end = changes.find("]]");
  if (begin == std::string::npos || end == std::string::npos) return changes;
  return absl::StrCat(changes.substr(0, begin), "[[...", changes.substr(end));
}

StepSpeed SpeedOf(const StepPrediction& p) {
  return {p.samples_per_second(), p.tflops_per_device, p.step.config.devices()};
}

std::string EvaluationText(const Evaluation& e, const StepFigures& figures,
                           const std::string& note) {
  const StepPrediction& p = e.prediction;
  const StepBreakdown& b = e.breakdown;
  const StepConfig& c = e.recipe().config;
  std::string text = note.empty() ? "" : absl::StrCat(WrappedLines(note), "\n");
  absl::StrAppend(
      &text, Wrapped("", absl::StrCat(e.input.system->name, ": ", ModelText(e.recipe().model))),
      absl::StrFormat("%d devices of %s, batch %d, %s\n", c.devices(),
                      e.input.on->step().cluster->name, c.batch(), NumberTypeName(e.recipe().type)),
      Wrapped("", c.ToString()), "\n");
  absl::StrAppendFormat(
      &text,
      "step %s ms: %s samples/s, %s tokens/s/GPU, %s Tflop/s per device, MFU %.1f %%%s\n"
      "bubble %.1f %%, exposed communication %.1f %%: %s %.1f, pipeline %.1f, "
      "data-parallel %.1f\n"
      "memory %.2f GiB of %.2f on the fullest device\n",
      FourDigits(ToMs(p.step_time)), FourDigits(p.samples_per_second()),
      FourDigits(figures.TokensPerSecond(SpeedOf(p))), FourDigits(p.tflops_per_device),
      ToPercent(figures.Mfu(SpeedOf(p))), figures.TrainingText(SpeedOf(p)), ToPercent(p.bubble),
      ToPercent(b.tensor + b.pipeline + b.data), CollectivesWithinLayers(c), ToPercent(b.tensor),
      ToPercent(b.pipeline), ToPercent(b.data), ToGiB(p.largest_device),
      ToGiB(p.step.device_memory));
  absl::StrAppend(&text, "\nAssumed:\n");
  for (const std::string& line : Assumptions(e.recipe())) text += Wrapped("  ", line);
  std::vector<std::string> not_priced = e.recipe().not_priced;
  not_priced.insert(not_priced.end(), e.recipe().unknown.begin(), e.recipe().unknown.end());
  if (!not_priced.empty()) {
    absl::StrAppend(&text, "Not priced:\n");
    for (const std::string& line : not_priced) text += Wrapped("  ", line);
  }
  if (!e.recipe().passed_over.empty()) {
    absl::StrAppend(&text, "Without influence:\n",
                    Wrapped("  ", absl::StrJoin(e.recipe().passed_over, ", ")));
  }
  if (!e.searched) return text;
  if (e.neighbours.empty()) absl::StrAppend(&text, "\nNo neighbour fits into memory.\n");
  const auto title = [&](absl::string_view what) {
    absl::StrAppendFormat(&text, "\n%10s %9s %10s  %s\n", "step [ms]", "gain [%]", "mem. [GiB]",
                          what);
  };
  const auto row = [](const StepPrediction& q, double gain) {
    return absl::StrFormat("%10s %+9.1f %10.2f  ", FourDigits(ToMs(q.step_time)), ToPercent(gain),
                           ToGiB(q.largest_device));
  };
  if (!e.neighbours.empty()) title("one or two values changed");
  for (const Neighbour& n : e.neighbours) {
    const std::string figures_of = row(n.prediction, e.gain(n));
    absl::StrAppend(&text, Wrapped(figures_of, n.prediction.step.config.ToString()),
                    Wrapped(std::string(figures_of.size(), ' '), WithoutLists(n.changes)));
  }
  const std::string part = e.path.whole ? ""
                                        : absl::StrCat(", of the first ", kMostLooks,
                                                       " grids, schedules and configurations");
  const std::string fastest =
      absl::StrCat("the fastest that ", e.input.system->name, " runs", part);
  if (e.path.steps.empty()) {
    absl::StrAppend(&text, "\n", Wrapped("", absl::StrCat("The recipe is ", fastest, ".")));
  } else {
    title(absl::StrCat("one change after another, to ", fastest));
  }
  Nanoseconds before = p.step_time;
  for (const PathStep& step : e.path.steps) {
    const double gain = ToMs(before) / ToMs(step.prediction.step_time) - 1;
    absl::StrAppend(&text, Wrapped(row(step.prediction, gain), WithoutLists(step.changes)));
    before = step.prediction.step_time;
  }
  return absl::StrCat(text, "\nAll figures are simulated.\n");
}

nlohmann::json EvaluationJson(const Evaluation& e, const StepFigures& figures,
                              const std::string& note) {
  nlohmann::json all = StepAsJson(e.prediction);
  all.update(figures.Json(SpeedOf(e.prediction)));
  if (!note.empty()) all["note"] = note.substr(0, note.size() - 1);
  const StepBreakdown& b = e.breakdown;
  all["system"] = e.input.system->name;
  all["model"] = ModelText(e.recipe().model);
  for (const auto& [name, share] : PartsOf(e.recipe().config, b)) all["parts"][name] = share;
  all["assumptions"] = Assumptions(e.recipe());
  all["not_priced"] = e.recipe().not_priced;
  all["unknown"] = e.recipe().unknown;
  all["passed_over"] = e.recipe().passed_over;
  all["neighbours"] = nlohmann::json::array();
  for (const Neighbour& n : e.neighbours) {
    all["neighbours"].push_back({{"config", n.prediction.step.config.ToString()},
                                 {"changes", n.changes},
                                 {"step_ms", ToMs(n.prediction.step_time)},
                                 {"gain", e.gain(n)},
                                 {"memory_bytes", n.prediction.largest_device.value()}});
  }
  all["path"] = nlohmann::json::array();
  for (const PathStep& step : e.path.steps) {
    all["path"].push_back({{"config", step.prediction.step.config.ToString()},
                           {"changes", step.changes},
                           {"step_ms", ToMs(step.prediction.step_time)},
                           {"memory_bytes", step.prediction.largest_device.value()}});
  }
  return all;
}

}  // namespace

absl::Status EvaluateCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "evaluate", ": --flags=FILE or --toml=FILE"));
  const int top = FlagWasSet("top") ? absl::GetFlag(FLAGS_top) : kNeighbours;
  PIPELAB_RETURN_IF_ERROR(CheckRange("--top", top, 0, 1000));
  Evaluation e;
  PIPELAB_ASSIGN_OR_RETURN(e.input, ReadRecipeInput());
  const StepConfig& config = e.recipe().config;
  const StepModel model = e.input.Model();
  StepCache cache(model);
  const absl::StatusOr<StepPrediction> predicted = PredictStep(&cache, config);
  if (!predicted.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(e.input.what, ": ", predicted.status().message()));
  }
  e.prediction = *predicted;
  PIPELAB_ASSIGN_OR_RETURN(e.breakdown, BreakDown(model, e.prediction));
  PIPELAB_ASSIGN_OR_RETURN(const StepFigures figures, StepFigures::OfFlags(model));
  e.searched = top > 0;
  if (e.searched) {
    PIPELAB_ASSIGN_OR_RETURN(const Bytes memory, UsableMemory(model.cluster->device.memory.value));
    PIPELAB_ASSIGN_OR_RETURN(e.neighbours, FindNeighbours(e, &cache, memory, top));
    PIPELAB_ASSIGN_OR_RETURN(e.path, PathToBest(e.input, &cache, memory));
  }
  PIPELAB_ASSIGN_OR_RETURN(
      const std::string note,
      CalibrationNote(model, e.prediction.step_time,
                      [&](const StepModel& changed) { return PredictStep(changed, config); }));
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(
        WriteOutput("--json_out", json_out, DumpJson(EvaluationJson(e, figures, note))));
  }
  if (json_out != "-") {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("stdout", "-", EvaluationText(e, figures, note)));
  }
  return CheckMemory(e.prediction);
}

}  // namespace pipelab
