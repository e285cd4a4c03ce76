// pipelab compare: configurations of a training step beside one another, and what makes the winner
// faster.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/step_figures.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/output.h"
#include "experiments/report/table.h"
#include "experiments/report/timeline_text.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_DECLARE_FLAG(int, columns);           // show_command.cc

namespace pipelab {
namespace {

struct Compared {
  StepPrediction prediction;
  StepBreakdown breakdown;
  bool fits = true;
  std::string note;
};

// Nanoseconds of a sample on a device: configurations may differ in their batches and devices.
double CostOf(const Compared& c) {
  const StepConfig& config = c.prediction.step.config;
  return static_cast<double>(c.prediction.step_time.value()) *
         static_cast<double>(config.devices()) / static_cast<double>(config.batch());
}

absl::StatusOr<Compared> Evaluate(const std::string& word) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ParseStepConfig("configuration", word));
  if (!config.has_schedule_file()) {
    PIPELAB_RETURN_IF_ERROR(FindScheme(config.scheme, "configuration").status());
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  PIPELAB_RETURN_IF_ERROR(CheckHasTimes(*on));
  Compared c;
  const auto predict = [&config](const StepModel& model) { return PredictStep(model, config); };
  absl::StatusOr<StepPrediction> prediction = predict(on->step());
  if (!prediction.ok()) {
    const absl::Status why = FaultOfModel(prediction.status(), config);
    return absl::Status(why.code(), absl::StrCat(word, ": ", why.message()));
  }
  c.prediction = *std::move(prediction);
  PIPELAB_ASSIGN_OR_RETURN(c.note, CalibrationNote(on->step(), c.prediction.step_time, predict));
  PIPELAB_ASSIGN_OR_RETURN(c.breakdown, BreakDown(on->step(), c.prediction));
  c.fits = CheckMemory(c.prediction).ok();
  return c;
}

Bytes TrafficOf(const StepPrediction& p) {
  Bytes most;
  for (const DevicePrediction& d : p.devices) {
    most = std::max(most, d.sent + d.collective + d.tensor);
  }
  return most;
}

std::string TableOf(const std::vector<Compared>& all) {
  std::string text = absl::StrFormat("%10s %9s %9s %11s %12s %12s  %s\n", "step [ms]", "bubble",
                                     "exposed", "memory", "sent", "Tflop/s", "configuration");
  absl::StrAppendFormat(&text, "%10s %9s %9s %11s %12s %12s\n", "", "[%]", "comm. [%]", "[GiB]",
                        "[GiB/dev.]", "per device");
  for (const Compared& c : all) {
    const StepPrediction& p = c.prediction;
    const StepBreakdown& b = c.breakdown;
    absl::StrAppendFormat(
        &text, "%10.2f %9.1f %9.1f %10.2f%s %12.3f %12.2f  %s\n", ToSeconds(p.step_time) * 1e3,
        100 * p.bubble, 100 * (b.tensor + b.pipeline + b.data), ToGiB(p.largest_device),
        c.fits ? " " : "!", ToGiB(TrafficOf(p)), p.tflops_per_device, p.step.config.ToString());
  }
  return text;
}

// By what the winner wins: of a step's parts the one with the largest difference to the next.
std::string FastestText(const std::vector<Compared>& all) {
  std::vector<const Compared*> order;
  for (const Compared& c : all) {
    if (c.fits) order.push_back(&c);
  }
  if (order.empty()) return "None fits into a device's memory (!).\n";
  std::stable_sort(order.begin(), order.end(),
                   [](const Compared* a, const Compared* b) { return CostOf(*a) < CostOf(*b); });
  const Compared& first = *order[0];
  const std::string name = first.prediction.step.config.ToString();
  if (order.size() == 1) return absl::StrCat("Only ", name, " fits into a device's memory.\n");
  const Compared& second = *order[1];
  const double gain = CostOf(second) / CostOf(first) - 1;
  if (gain == 0) return "The first two take the same time per sample.\n";
  const StepBreakdown &a = first.breakdown, &b = second.breakdown;
  const double fast = CostOf(first), slow = CostOf(second);
  const std::string within = CollectivesWithinLayers(second.prediction.step.config);
  std::pair<double, std::string> most = {0, "rounding"};
  for (const auto& [what, own, other] :
       {std::make_tuple("idle time", a.idle, b.idle),
        std::make_tuple("exposed messages", a.pipeline, b.pipeline),
        std::make_tuple("exposed data-parallel collectives", a.data, b.data),
        std::make_tuple(within.c_str(), a.tensor, b.tensor),
        std::make_tuple("recomputation", a.recompute, b.recompute),
        std::make_tuple("compute", a.compute, b.compute),
        std::make_tuple("optimizer steps", a.step, b.step)}) {
    most = std::max(most, {other * slow - own * fast, what});
  }
  return absl::StrFormat(
      "%s is fastest: %.1f %% faster per sample and device than %s, most of it by less %s.\n", name,
      100 * gain, second.prediction.step.config.ToString(), most.second);
}

}  // namespace

absl::Status CompareCommand(const Words& words) {
  if (words.size() < 3) {
    return absl::InvalidArgumentError(
        "compare: needs at least two configurations, such as 1f1b:P=4,M=8 zbv:P=4,M=8");
  }
  std::vector<Compared> all;
  for (size_t i = 1; i < words.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(all.emplace_back(), Evaluate(words[i]));
  }
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Compared& c : all) list.push_back(StepAsJson(c.prediction));
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out, DumpJson(list)));
  }
  if (json_out != "-") {
    std::string text;
    for (const Compared& c : all) {
      if (c.note.empty()) continue;
      absl::StrAppend(&text, c.prediction.step.config.ToString(), "\n", c.note, "\n");
    }
    absl::StrAppend(&text, TableOf(all), "\n", FastestText(all));
    for (const Compared& c : all) {
      absl::StrAppend(&text, "\n", c.prediction.step.config.ToString(), "\n",
                      TimelineText(c.prediction.step.program, c.prediction.trace,
                                   absl::GetFlag(FLAGS_columns)));
    }
    PIPELAB_RETURN_IF_ERROR(WriteOutput("stdout", "-", text));
  }
  for (const Compared& c : all) PIPELAB_RETURN_IF_ERROR(CheckMemory(c.prediction));
  return absl::OkStatus();
}

}  // namespace pipelab
