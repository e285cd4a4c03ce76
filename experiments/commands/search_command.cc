// pipelab search: the fastest grid and schedule for a model, a cluster and a batch.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/interrupt.h"
#include "experiments/flags/option_checks.h"
#include "experiments/flags/output.h"
#include "experiments/report/table.h"
#include "experiments/report/timeline_text.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);           // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, json);      // schedule_input.cc; `search --json` means --json=-
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_FLAG(int64_t, batch, 0, "samples of a training step");
ABSL_FLAG(int, top, 10, "configurations to print, the fastest first");
ABSL_FLAG(std::string, schemes, "",
          "schemes and schedule files to search, such as 1f1b,zbv,mine.csv; empty: every "
          "synchronous scheme for a chain of stages, those for parts of a vocabulary, and none");
ABSL_FLAG(int, max_tensor, 0, "largest tensor-parallel group; 0: the devices of a node");
ABSL_FLAG(int, max_context, 0, "devices that divide each sample's tokens, at most; 0: any number");
ABSL_FLAG(int, max_expert, 0,
          "devices that divide the experts of each layer, at most; 0: any number");
ABSL_FLAG(std::string, fixed, "",
          "keys that every configuration must have, such as P=8,sharding=optimizer,recompute=none; "
          "keys that search does not vary have their defaults unless they are given here");
ABSL_FLAG(std::string, explain, "",
          "a configuration as search prints it: its timeline and where its step goes");

namespace pipelab {
namespace {

constexpr int64_t kMostBatch = 1 << 24;

absl::StatusOr<std::unique_ptr<ModelOnCluster>> ReadRequest() {
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(StepConfig()));
  if (on->step().cluster != nullptr) return on;
  return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
}

absl::StatusOr<std::vector<SearchMethod>> MethodsFromFlags(const ModelGraph& model) {
  std::vector<SearchMethod> methods;
  const std::string schemes = absl::GetFlag(FLAGS_schemes);
  if (schemes.empty()) return AllMethods(model);
  for (const absl::string_view scheme : absl::StrSplit(schemes, ',', absl::SkipEmpty())) {
    StepConfig file;
    file.scheme = std::string(scheme);
    if (!file.has_schedule_file()) {
      PIPELAB_ASSIGN_OR_RETURN(const Scheme* found, FindScheme(scheme, "--schemes"));
      const bool graph = (found->options & kStageGraph) != 0 && !TakesVocabularyParts(*found);
      if (found->asynchronous || graph || (found->options & kForwardOnly) != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--schemes=", scheme, ": search compares synchronous training in a chain of stages"));
      }
    }
    methods.push_back(MethodOf(std::string(scheme)));
  }
  return methods;
}

nlohmann::json RankedStepJson(const RankedStep& r) {
  const StepConfig& c = r.config;
  return {{"config", c.ToString()},
          {"method", r.method},
          {"scheme", c.scheme},
          {"pipeline", c.pipeline},
          {"tensor", c.tensor},
          {"context", c.context},
          {"experts", c.experts},
          {"data", c.data},
          {"virtual_stages", c.virtual_stages},
          {"micro_batch_samples", c.micro_batch_size},
          {"micro_batches", c.micro_batches},
          {"sharding", ShardingName(c.sharding)},
          {"recompute", RecomputeName(c.recompute)},
          {"sequence", c.sequence_parallel},
          {"step_ms", ToMs(r.step_time)},
          {"samples_per_second", r.samples_per_second},
          {"tflops_per_device", r.tflops_per_device},
          {"memory_bytes", r.largest_device.value()}};
}

std::string RefusalText(const SearchRefusals& r) {
  std::string text = absl::StrFormat(
      "%d configurations were looked at, %d of them bounded by their schedule's order and %d "
      "simulated; the bounds of the others are beyond what was found.\nRefused: %d for memory",
      r.considered, r.ordered, r.simulated, r.memory);
  if (r.memory > 0) {
    absl::StrAppendFormat(&text, " (the nearest, %s, needs %.2f GiB)", r.nearest,
                          ToGiB(r.least_memory));
  }
  absl::StrAppendFormat(&text,
                        ", %d grids for tensor parallelism, %d for the batch, %d by their scheme",
                        r.tensor, r.batch, r.scheme);
  if (r.scheme > 0) absl::StrAppend(&text, " (", r.scheme_reason, ")");
  return text + ".\n";
}

std::string SearchTable(const SearchResult& result, size_t top) {
  std::string text = absl::StrFormat("%-24s %10s %11s %12s %10s  %s\n", "method", "step [ms]",
                                     "samples/s", "Tflop/s/dev.", "mem. [GiB]", "configuration");
  for (size_t i = 0; i < std::min(top, result.best.size()); ++i) {
    const RankedStep& r = result.best[i];
    absl::StrAppendFormat(&text, "%-24s %10.2f %11.3f %12.2f %10.2f  %s\n", r.method,
                          ToMs(r.step_time), r.samples_per_second, r.tflops_per_device,
                          ToGiB(r.largest_device), r.config.ToString());
  }
  return absl::StrCat(text, "\nAll figures are simulated. ", RefusalText(result.refusals));
}

// 0 where none are given: the flag's default is that of a schedule.
int64_t DevicesFromFlags() { return FlagWasSet("devices") ? absl::GetFlag(FLAGS_devices) : 0; }

// What says another configuration than --explain's, or cannot be had of it.
absl::StatusOr<StepConfig> ConfigToExplain(const std::string& text) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ParseStepConfig("--explain", text));
  if (!config.has_schedule_file()) {
    PIPELAB_RETURN_IF_ERROR(FindScheme(config.scheme, "--explain").status());
  }
  if (static_cast<double>(config.micro_batch_size) * config.micro_batches * config.data >
      kMostBatch) {
    return absl::InvalidArgumentError(absl::StrCat("--explain=", text, ": a batch of more than ",
                                                   kMostBatch, " samples, b times M times D"));
  }
  const int64_t devices = DevicesFromFlags(), batch = absl::GetFlag(FLAGS_batch);
  if (devices != 0 && devices != config.devices()) {
    return absl::InvalidArgumentError(absl::StrCat("--devices=", devices, ": --explain=", text,
                                                   " has ", config.devices(), " devices"));
  }
  if (batch != 0 && batch != config.batch()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch=", batch, ": --explain=", text, " has a batch of ", config.batch()));
  }
  return config;
}

// Where the step goes, each a share of devices x step.
std::vector<std::pair<std::string, double>> PartsOf(const StepConfig& c, const StepBreakdown& b) {
  return {{"compute", b.compute},
          {"recompute", b.recompute},
          {absl::StrCat("tensor-", c.context > 1 ? ", context-" : "",
                        c.experts > 1 ? ", expert-" : "", "parallel collectives"),
           b.tensor},
          {"optimizer step", b.step},
          {"idle: fill, drain, imbalance", std::max(0.0, b.idle)},
          {"pipeline messages, not hidden", b.pipeline},
          {"data-parallel collectives, not hidden", b.data}};
}

// The calibration note, set off from what follows it.
absl::StatusOr<std::string> NoteAbove(const StepModel& on, const StepConfig& config,
                                      Nanoseconds expected) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string note,
                           CalibrationNote(on, expected, [&](const StepModel& model) {
                             return PredictStep(model, config);
                           }));
  return note.empty() ? note : absl::StrCat(note, "\n");
}

absl::Status Explain(const std::string& text) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ConfigToExplain(text));
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  const absl::StatusOr<StepPrediction> predicted = PredictStep(on->step(), config);
  if (!predicted.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--explain=", text, ": ", predicted.status().message()));
  }
  const StepPrediction& p = *predicted;
  PIPELAB_ASSIGN_OR_RETURN(const StepBreakdown b, BreakDown(on->step(), p));
  std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (json_out.empty()) json_out = absl::GetFlag(FLAGS_json);
  if (!json_out.empty()) {
    nlohmann::json all = StepAsJson(p);
    for (const auto& [name, share] : PartsOf(config, b)) all["parts"][name] = share;
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out, DumpJson(all)));
  }
  if (json_out == "-") return CheckMemory(p);
  const StepConfig& c = p.step.config;
  PIPELAB_ASSIGN_OR_RETURN(std::string out, NoteAbove(on->step(), config, p.step_time));
  absl::StrAppendFormat(
      &out,
      "%s: batch %d on %d devices, step %.2f ms, %.3f samples/s, %.2f Tflop/s per device, bubble "
      "%.1f %%, %.2f GiB of %.2f\n\n",
      c.ToString(), c.batch(), c.devices(), ToMs(p.step_time), p.samples_per_second(),
      p.tflops_per_device, ToPercent(p.bubble), ToGiB(p.largest_device),
      ToGiB(p.step.device_memory));
  for (const auto& [name, share] : PartsOf(c, b)) {
    absl::StrAppendFormat(&out, "%-38s %6.1f %%\n", name, ToPercent(share));
  }
  absl::StrAppend(&out, "\n", TimelineText(p.trace, /*columns=*/100));
  PIPELAB_RETURN_IF_ERROR(WriteOutput("stdout", "-", out));
  return CheckMemory(p);
}

absl::StatusOr<std::string> NoteOfFastest(const StepModel& on, const SearchResult& result) {
  if (result.best.empty()) return "";
  const RankedStep& fastest = result.best[0];
  return NoteAbove(on, fastest.config, fastest.step_time);
}

// 0 leaves the limit as it is.
absl::Status TakeMost(absl::string_view option, int value, int* most) {
  PIPELAB_RETURN_IF_ERROR(CheckRange(option, value, 0, 1 << 20));
  if (value > 0) *most = value;
  return absl::OkStatus();
}

absl::Status TakeFixed(const ModelGraph& graph, SearchRequest* search) {
  PIPELAB_ASSIGN_OR_RETURN(search->fixed, ParseFixedKeys("--fixed", absl::GetFlag(FLAGS_fixed)));
  const StepConfig& c = search->fixed.values;
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(graph, {1, false, c.context}, "--fixed=C"));
  PIPELAB_RETURN_IF_ERROR(
      CheckExpertParallel(graph, {1, false, 1, c.experts}, /*copies=*/c.experts, "--fixed=E"));
  search->max_context = std::max(search->max_context, c.context);
  search->max_expert = std::max(search->max_expert, c.experts);
  return absl::OkStatus();
}

absl::StatusOr<SearchRequest> SearchFromFlags(const StepModel& on) {
  const int64_t devices = DevicesFromFlags();
  SearchRequest search = WholeSpace(on, devices == 0 ? on.cluster->max_devices() : devices,
                                    absl::GetFlag(FLAGS_batch));
  search.top = absl::GetFlag(FLAGS_top);
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_tensor", absl::GetFlag(FLAGS_max_tensor), &search.max_tensor));
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_context", absl::GetFlag(FLAGS_max_context), &search.max_context));
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_expert", absl::GetFlag(FLAGS_max_expert), &search.max_expert));
  PIPELAB_RETURN_IF_ERROR(TakeFixed(on.model->graph, &search));
  PIPELAB_ASSIGN_OR_RETURN(search.memory, UsableMemory(on.cluster->device.memory.value));
  PIPELAB_ASSIGN_OR_RETURN(search.methods, MethodsFromFlags(on.model->graph));
  return search;
}

}  // namespace

absl::Status SearchCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "search"));
  const std::string explain = absl::GetFlag(FLAGS_explain);
  if (!explain.empty()) return Explain(explain);
  if (!FlagWasSet("batch")) {
    return absl::InvalidArgumentError("--batch: missing; the samples of a training step");
  }
  PIPELAB_RETURN_IF_ERROR(CheckRange("--batch", absl::GetFlag(FLAGS_batch), 1, kMostBatch));
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, ReadRequest());
  PIPELAB_ASSIGN_OR_RETURN(SearchRequest search, SearchFromFlags(on->step()));
  const InterruptGuard interrupt;
  ProgressOptions seldom;  // in a log
  seldom.log_interval = absl::Seconds(60);
  Progress progress("search", /*total=*/0, "configuration", seldom);
  search.stop = [&] {
    progress.Add(1);
    return interrupt.raised();
  };
  search.found = [&](const RankedStep& r) {
    progress.Add(0, absl::StrFormat("best %.2f ms", ToMs(r.step_time)));
  };
  PIPELAB_ASSIGN_OR_RETURN(const SearchResult result, Search(on->step(), search));
  std::string json = absl::GetFlag(FLAGS_json_out);
  if (json.empty()) json = absl::GetFlag(FLAGS_json);
  if (json.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string note, NoteOfFastest(on->step(), result));
    const absl::string_view stopped =
        result.stopped ? "Interrupted: this is the best so far, not of all.\n" : "";
    return WriteOutput(
        "stdout", "-",
        absl::StrCat(note, stopped, SearchTable(result, static_cast<size_t>(search.top))));
  }
  nlohmann::json all = nlohmann::json::array();
  for (const RankedStep& r : result.best) {
    if (all.size() < static_cast<size_t>(search.top)) all.push_back(RankedStepJson(r));
  }
  nlohmann::json found = {
      {"schema", kOutputSchema}, {"best", all}, {"refused", RefusalText(result.refusals)}};
  if (result.stopped) found["stopped"] = true;
  return WriteOutput("--json_out", json, DumpJson(found));
}

}  // namespace pipelab
