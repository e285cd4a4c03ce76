// pipelab search: the fastest grid and schedule for a model, a cluster and a batch.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/run_flags.h"
#include "experiments/option_checks.h"
#include "experiments/report/table.h"
#include "experiments/report/timeline_text.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/step/step_config.h"
#include "pipelines/search/search.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);  // run_flags.cc
ABSL_DECLARE_FLAG(std::string, json);   // schedule_input.cc; `search --json` means --json=-
ABSL_FLAG(int64_t, batch, 0, "samples of a training step");
ABSL_FLAG(int64_t, gpus, 0, "devices to use; 0: all of the cluster");
ABSL_FLAG(int, top, 10, "configurations to print, the fastest first");
ABSL_FLAG(std::string, explain, "",
          "a configuration as search prints it: its timeline and where its step goes");

namespace pipelab {
namespace {

constexpr int64_t kMostBatch = 1 << 24;

// What the flags name; `grid` points into the rest.
struct Request {
  GroupedModel model;
  ClusterSpec cluster;
  StepModel grid;
};

absl::Status ReadRequest(Request* request) {
  if (absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError("--model: missing; search needs a name or a file");
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, ModelFromFlags());
  request->model = GroupByName(std::move(graph));
  PIPELAB_ASSIGN_OR_RETURN(request->cluster, ClusterFromFlags());
  request->grid.model = &request->model;
  request->grid.cluster = &request->cluster;
  PIPELAB_ASSIGN_OR_RETURN(const absl::optional<NumberType> type, NumberTypeFromFlags());
  request->grid.type = type.value_or(NarrowestType(request->cluster.device));
  return absl::OkStatus();
}

nlohmann::json AsJson(const RankedStep& r) {
  const StepConfig& c = r.config;
  return {{"config", c.ToString()},
          {"method", r.method},
          {"scheme", c.scheme},
          {"pipeline", c.pipeline},
          {"tensor", c.tensor},
          {"data", c.data},
          {"virtual_stages", c.virtual_stages},
          {"micro_batch_samples", c.micro_batch_size},
          {"micro_batches", c.micro_batches},
          {"sharding", ShardingName(c.sharding)},
          {"recompute", c.recompute},
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

std::string AsTable(const SearchResult& result, size_t top) {
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

// What says another configuration than --explain's, or cannot be had of it.
absl::StatusOr<StepConfig> ConfigToExplain(const std::string& text) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ParseStepConfig("--explain", text));
  PIPELAB_RETURN_IF_ERROR(FindScheme(config.scheme, "--explain").status());
  if (static_cast<double>(config.micro_batch_size) * config.micro_batches * config.data >
      kMostBatch) {
    return absl::InvalidArgumentError(absl::StrCat("--explain=", text, ": a batch of more than ",
                                                   kMostBatch, " samples, b times M times D"));
  }
  const int64_t gpus = absl::GetFlag(FLAGS_gpus), batch = absl::GetFlag(FLAGS_batch);
  if (gpus != 0 && gpus != config.devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus=", gpus, ": --explain=", text, " has ", config.devices(), " devices"));
  }
  if (batch != 0 && batch != config.batch()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch=", batch, ": --explain=", text, " has a batch of ", config.batch()));
  }
  const std::string json = absl::GetFlag(FLAGS_json);
  if (json.empty()) return config;
  return absl::InvalidArgumentError(
      absl::StrCat("--json=", json, ": --explain prints text; give one of them"));
}

absl::Status Explain(const Request& request, const std::string& text) {
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ConfigToExplain(text));
  const absl::StatusOr<StepPrediction> evaluated = PredictStep(request.grid, config);
  if (!evaluated.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--explain=", text, ": ", evaluated.status().message()));
  }
  const StepPrediction& point = *evaluated;
  PIPELAB_ASSIGN_OR_RETURN(const StepBreakdown b, BreakDown(request.grid, point));
  std::string out = absl::StrFormat(
      "%s: batch %d on %d devices, step %.2f ms, %.3f samples/s, %.2f Tflop/s a device, %.2f GiB "
      "of "
      "%.2f\n\n",
      config.ToString(), config.batch(), config.devices(), ToMs(point.step_time),
      point.samples_per_second(), point.tflops_per_device, ToGiB(point.largest_device),
      ToGiB(request.cluster.device.memory.value));
  for (const auto& [name, share] :
       {std::make_pair("compute", b.compute), std::make_pair("recompute", b.recompute),
        std::make_pair("tensor-parallel collectives", b.tensor),
        std::make_pair("optimizer step", b.step), std::make_pair("bubble", b.idle),
        std::make_pair("pipeline messages, not hidden", b.pipeline),
        std::make_pair("data-parallel collectives, not hidden", b.data)}) {
    absl::StrAppendFormat(&out, "%-38s %6.1f %%\n", name, ToPercent(share));
  }
  absl::StrAppend(&out, "\n", TimelineText(point.trace, /*columns=*/100));
  return WriteOutput("stdout", "-", out);
}

}  // namespace

absl::Status SearchCommand(const Words& words) {
  if (words.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", words[1], "': search takes options alone"));
  }
  Request request;
  PIPELAB_RETURN_IF_ERROR(ReadRequest(&request));
  const std::string explain = absl::GetFlag(FLAGS_explain);
  if (explain.empty()) {
    PIPELAB_RETURN_IF_ERROR(CheckRange("--batch", absl::GetFlag(FLAGS_batch), 1, kMostBatch));
  }
  if (!explain.empty()) return Explain(request, explain);
  SearchRequest search;
  search.batch = absl::GetFlag(FLAGS_batch);
  const int64_t gpus = absl::GetFlag(FLAGS_gpus);
  search.devices = gpus == 0 ? request.cluster.max_devices() : gpus;
  search.top = absl::GetFlag(FLAGS_top);
  search.max_tensor = static_cast<int>(NodeDevices(request.cluster));
  search.methods = PublishedMethods();
  for (SearchMethod& method : NewerMethods()) search.methods.push_back(std::move(method));
  PIPELAB_ASSIGN_OR_RETURN(const SearchResult result, Search(request.grid, search));
  const std::string json = absl::GetFlag(FLAGS_json);
  if (json.empty()) {
    return WriteOutput("stdout", "-", AsTable(result, static_cast<size_t>(search.top)));
  }
  nlohmann::json all = nlohmann::json::array();
  for (const RankedStep& r : result.best) {
    if (all.size() < static_cast<size_t>(search.top)) all.push_back(AsJson(r));
  }
  return WriteOutput("--json", json,
                     DumpJson({{"best", all}, {"refused", RefusalText(result.refusals)}}));
}

}  // namespace pipelab
