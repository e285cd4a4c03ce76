// pipelab search: the fastest grid and schedule for a model, a cluster and a batch.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/search_report.h"
#include "experiments/commands/step_figures.h"
#include "experiments/commands/step_input.h"
#include "experiments/commands/system_search.h"
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
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);           // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, kernels);   // step_input.cc
ABSL_DECLARE_FLAG(std::string, model);     // run_flags.cc
ABSL_DECLARE_FLAG(std::string, json);      // schedule_input.cc; `search --json` means --json=-
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_FLAG(int64_t, batch, 0, "samples of a training step");
ABSL_FLAG(int, top, 5, "layouts to print, the fastest first");
ABSL_FLAG(
    std::string, schemes, "",
    "schemes and schedule files to search, such as 1f1b,zbv,mine.csv, and 'no pipeline'; empty: "
    "that, every synchronous scheme for a chain of stages, and those for parts of a vocabulary");
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
// Configurations, and the time of each, grow with the blocks that stages may begin with.
constexpr int kMostBlocks = 4096;

absl::StatusOr<std::unique_ptr<ModelOnCluster>> ReadRequest() {
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(StepConfig()));
  const int blocks = on->model().num_groups();
  if (blocks > kMostBlocks) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--model=", absl::GetFlag(FLAGS_model), ": search cuts a model between blocks, at most ",
        kMostBlocks, ", and this has ", blocks,
        "; layers whose names are alike up to a /, such as 7/dense and 7/norm, are one block"));
  }
  if (on->step().cluster != nullptr) return on;
  return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
}

absl::StatusOr<std::vector<SearchMethod>> MethodsFromFlags(const ModelGraph& model) {
  std::vector<SearchMethod> methods;
  const std::string schemes = absl::GetFlag(FLAGS_schemes);
  if (schemes.empty()) return AllMethods(model);
  const SearchMethod no_pipeline = NoPipelineMethod();
  std::set<absl::string_view> named;
  for (const absl::string_view scheme : absl::StrSplit(schemes, ',', absl::SkipEmpty())) {
    if (!named.insert(scheme).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--schemes=", scheme, ": named twice; name each once"));
    }
    if (scheme == no_pipeline.name) {
      methods.push_back(no_pipeline);
      continue;
    }
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

std::string ReserveText() {
  const double reserve = ReserveFromFlags(kMemoryReserve);
  if (reserve == 0) return "";
  return absl::StrFormat("%g %% of each device's memory is kept free (--reserve). ",
                         ToPercent(reserve));
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

// The calibration note, set off from what follows it.
absl::StatusOr<std::string> NoteAbove(const StepModel& on, const StepConfig& config,
                                      Nanoseconds expected) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string note,
                           CalibrationNote(on, expected, [&](const StepModel& model) {
                             return PredictStep(model, config);
                           }));
  return note.empty() ? note : absl::StrCat(WrappedLines(note), "\n");
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
  absl::StrAppend(
      &out,
      Wrapped("", absl::StrFormat(
                      "%s: batch %d on %d devices, step %.2f ms, %.3f samples/s, %.2f Tflop/s per "
                      "device, bubble %.1f %%, %.2f GiB of %.2f",
                      c.ToString(), c.batch(), c.devices(), ToMs(p.step_time),
                      p.samples_per_second(), p.tflops_per_device, ToPercent(p.bubble),
                      ToGiB(p.largest_device), ToGiB(p.step.device_memory))),
      "\n");
  for (const auto& [name, share] : PartsOf(c, b)) {
    absl::StrAppendFormat(&out, "%-58s %6.1f %%\n", name, ToPercent(share));
  }
  absl::StrAppend(&out, "\n", TimelineText(p.step.program, p.trace, /*columns=*/100));
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
  TensorParallel tokens = {c.tensor, false, c.context};
  tokens.exchange = c.context_exchange;
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(graph, tokens, "--fixed=C"));
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
  search.by_layout = true;
  search.moved_rows = 3;
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_tensor", absl::GetFlag(FLAGS_max_tensor), &search.max_tensor));
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_context", absl::GetFlag(FLAGS_max_context), &search.max_context));
  PIPELAB_RETURN_IF_ERROR(
      TakeMost("--max_expert", absl::GetFlag(FLAGS_max_expert), &search.max_expert));
  PIPELAB_RETURN_IF_ERROR(TakeFixed(on.model->graph, &search));
  PIPELAB_ASSIGN_OR_RETURN(search.memory,
                           UsableMemory(on.cluster->device.memory.value, kMemoryReserve));
  PIPELAB_ASSIGN_OR_RETURN(search.methods, MethodsFromFlags(on.model->graph));
  return search;
}

struct Answer {
  const SearchResult& result;
  const absl::optional<SearchResult>& any;  // beside what systems run
  const StepFigures& figures;
  int64_t devices = 0, batch = 0;
  size_t top = 0;
  std::string kernels;  // "; --kernels=megatron", for the commands that take a row's configuration
};

absl::StatusOr<std::string> AnswerText(const StepModel& on, const Answer& a) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string note, NoteOfFastest(on, a.result));
  const absl::string_view stopped =
      a.result.stopped ? "Interrupted: this is the best so far, not of all.\n" : "";
  const std::string about =
      absl::StrCat(a.figures.Headline(), "; ", a.devices, " devices of ", on.cluster->name, ", ",
                   NumberTypeName(on.type), ", a batch of ", a.batch, a.kernels);
  std::string text = absl::StrCat(note, stopped, Wrapped("", about), "\n",
                                  SearchTable(a.result, a.figures, a.top), "\n");
  if (a.any.has_value()) {
    absl::StrAppend(&text, "Whether a system runs it or not:\n\n",
                    SearchTable(*a.any, a.figures, a.top), "\n");
  }
  const SearchRefusals& refusals = a.result.refusals;
  return absl::StrCat(
      text,
      Wrapped("", absl::StrCat("All figures are simulated. ", ReserveText(), LooksText(refusals))),
      Wrapped("", RefusalText(refusals)));
}

absl::StatusOr<nlohmann::json> AnswerJson(const StepModel& on, const Answer& a) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string note, NoteOfFastest(on, a.result));
  const SearchRefusals& refusals = a.result.refusals;
  nlohmann::json all = {
      {"schema", kOutputSchema},
      {"best", SearchRows(a.result, a.figures, a.top)},
      {"refused", absl::StrCat(LooksText(refusals), "\n", RefusalText(refusals), "\n")},
      {"reserve", ReserveFromFlags(kMemoryReserve)}};
  if (a.any.has_value()) all["any"] = SearchRows(*a.any, a.figures, a.top);
  if (!note.empty()) all["note"] = note.substr(0, note.find_last_not_of('\n') + 1);
  if (a.result.stopped) all["stopped"] = true;
  return all;
}

// All that changes neither the numbers which are trained nor the question.
absl::StatusOr<SearchResult> SearchAny(const SystemSearch& systems, StepCache* cache,
                                       SearchRequest search) {
  PIPELAB_ASSIGN_OR_RETURN(const StateNumbers state, systems.State(cache->model()));
  for (SearchMethod& m : search.methods) m.state = state;
  return Search(cache, search);
}

absl::StatusOr<SearchResult> SearchAsAsked(const SystemSearch& systems, StepCache* cache,
                                           const SearchRequest& search) {
  if (!systems.asked()) return Search(cache, search);
  absl::StatusOr<SearchResult> result = systems.Run(cache, search);
  if (!systems.by_default() || !absl::IsNotFound(result.status())) return result;
  absl::StatusOr<SearchResult> any = SearchAny(systems, cache, search);
  if (any.ok()) {
    std::fprintf(stderr,
                 "Note: Megatron-LM runs no such configuration; these are of all schedules "
                 "(--systems=none).\n");
  }
  return any;
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
  PIPELAB_ASSIGN_OR_RETURN(const SystemSearch systems, SystemSearch::OfFlags());
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, ReadRequest());
  PIPELAB_ASSIGN_OR_RETURN(SearchRequest search, SearchFromFlags(on->step()));
  PIPELAB_ASSIGN_OR_RETURN(const StepFigures figures, StepFigures::OfFlags(on->step()));
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
  StepCache cache(on->step());
  PIPELAB_ASSIGN_OR_RETURN(const SearchResult result, SearchAsAsked(systems, &cache, search));
  absl::optional<SearchResult> any;  // beside what systems run
  if (systems.any() && !result.stopped) {
    PIPELAB_ASSIGN_OR_RETURN(any, SearchAny(systems, &cache, search));
  }
  const bool megatron = absl::GetFlag(FLAGS_kernels) == "megatron";
  const Answer answer{result,
                      any,
                      figures,
                      search.devices,
                      search.batch,
                      static_cast<size_t>(search.top),
                      megatron ? "; --kernels=megatron" : ""};
  std::string json = absl::GetFlag(FLAGS_json_out);
  if (json.empty()) json = absl::GetFlag(FLAGS_json);
  if (!json.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json all, AnswerJson(on->step(), answer));
    return WriteOutput("--json_out", json, DumpJson(all));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, AnswerText(on->step(), answer));
  return WriteOutput("stdout", "-", text);
}

}  // namespace pipelab
