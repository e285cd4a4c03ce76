// tools/bazel run //experiments:quickstart
//
// Trains one small GPT on Jane Austen's novels, serially and under each scheme on devices of this
// process, or of those that mpirun started, and compares loss, time, bubble, memory and traffic.
// Time and memory stand beside what the cost model predicts of them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "experiments/flags/option_checks.h"
#include "experiments/report/report.h"
#include "experiments/study/study_main.h"
#include "experiments/training/comparison.h"
#include "experiments/training/optimizer_flags.h"
#include "experiments/training/processes.h"
#include "experiments/training/text_choice.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, schemes, "gpipe,1f1b,interleaved,breadth_first,chimera",
          "schemes to compare, separated by commas; empty: all of the catalogue");
ABSL_FLAG(int, devices, 4, "pipeline devices");
ABSL_FLAG(int, micro_batches, 8, "micro-batches per step, over all replicas");
ABSL_FLAG(int, virtual_stages, 0,
          "stages per device of the looped schemes; 0: each scheme's own (2)");
ABSL_FLAG(int, micro_batch_size, 1, "samples per micro-batch");
ABSL_FLAG(int, steps, 40, "training steps under each scheme");
ABSL_FLAG(int, layers, 8, "Transformer blocks");
ABSL_FLAG(int, hidden, 128, "hidden size");
ABSL_FLAG(int, heads, 4, "attention heads");
ABSL_FLAG(int, tokens, 128, "tokens per sample");
ABSL_FLAG(double, dropout, 0.1, "dropout rate");
ABSL_FLAG(bool, tied, false, "tie the output table to the input embedding");
ABSL_FLAG(uint64_t, seed, 1, "seed of weights, data order and dropout");
ABSL_FLAG(std::string, layout, "",
          "layers of each stage, such as 3,2,2,3; empty: balanced by flops");
ABSL_FLAG(bool, synthetic, false, "train on generated text instead of fetching the novels");

namespace pipelab {
namespace {

absl::StatusOr<ComparisonOptions> OptionsFromFlags() {
  ComparisonOptions options;
  const std::string schemes = absl::GetFlag(FLAGS_schemes);
  options.schemes = absl::StrSplit(schemes, ',', absl::SkipEmpty());
  options.devices = absl::GetFlag(FLAGS_devices);
  options.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  options.virtual_stages = absl::GetFlag(FLAGS_virtual_stages);
  options.micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size);
  options.steps = absl::GetFlag(FLAGS_steps);
  options.seed = absl::GetFlag(FLAGS_seed);
  PIPELAB_ASSIGN_OR_RETURN(options.optimizer, OptimizerFromFlags({}, options.steps));
  options.layout = absl::GetFlag(FLAGS_layout);
  options.calibrate = true;
  return options;
}

GptConfig ModelFromFlags(int64_t vocabulary) {
  GptConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  config.hidden = absl::GetFlag(FLAGS_hidden);
  config.heads = absl::GetFlag(FLAGS_heads);
  config.tokens = absl::GetFlag(FLAGS_tokens);
  config.vocabulary = vocabulary;
  config.dropout = absl::GetFlag(FLAGS_dropout);
  config.tied_embeddings = absl::GetFlag(FLAGS_tied);
  return config;
}

absl::Status CheckSizes(const ComparisonOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", options.steps, 1, kMostSteps));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--micro_batch_size", options.micro_batch_size, 1, kMostSamples));
  return CheckRange("--micro_batches", options.micro_batches, 1, kMostMicroBatches);
}

// What the project itself expects of every scheme.
void AddClaims(const ComparisonResult& result, Report* report) {
  Claim serial =
      OwnClaim("quickstart.equals_serial",
               "every scheme trains as no pipeline does: losses to the bit, or within the "
               "rounding of sums in another order");
  int equal = 0;
  std::string off;
  double peak_error = 0;
  std::string peak_of;
  for (const SchemeResult& r : result.schemes) {
    const Equality equality = CompareLosses(r, result.serial_losses);
    if (equality.ok) ++equal;
    if (!equality.ok)
      absl::StrAppend(&off, off.empty() ? "" : "; ", r.config.scheme, " ", equality.text);
    for (size_t d = 0; d < r.simulated.devices.size(); ++d) {
      const double error = std::abs(
          r.simulated.devices[d].peak_activation / r.traces.back().devices[d].peak_activation - 1);
      if (error <= peak_error) continue;
      peak_error = error;
      peak_of = absl::StrCat(r.config.scheme, " on device ", d);
    }
  }
  const int schemes = static_cast<int>(result.schemes.size());
  serial.unit = "schemes";
  Found(&serial, Origin::kMeasured, equal, absl::StrCat(equal, " of ", schemes, " schemes"));
  MetIf(&serial, equal == schemes, "all", off);
  report->AddClaim(std::move(serial));

  Claim memory = OwnClaim("quickstart.peak_memory",
                          "each device's peak of activations is predicted to the byte");
  memory.unit = "%";
  Found(&memory, Origin::kMeasured, ToPercent(peak_error), peak_of.empty() ? "no difference" : "");
  MetIf(&memory, peak_error == 0, "no difference on any device",
        absl::StrCat("the largest difference is that of ", peak_of));
  report->AddClaim(std::move(memory));
}

absl::Status Run(const Processes& processes, StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(ComparisonOptions options, OptionsFromFlags());
  options.transport = processes.transport();
  // What can be refused is refused before anything is fetched or trained.
  PIPELAB_RETURN_IF_ERROR(CheckSizes(options));
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph any_text, BuildGpt(ModelFromFlags(/*vocabulary=*/256)));
  PIPELAB_RETURN_IF_ERROR(CheckMemory(any_text, options.micro_batch_size));
  PIPELAB_RETURN_IF_ERROR(CheckComparison(any_text, options));
  PIPELAB_RETURN_IF_ERROR(processes.CheckSame("options", study->command()));
  if (!processes.speaks()) study->BeQuiet();
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const ChosenText text, processes.FirstThenAll<ChosenText>([] {
    return ChooseText(absl::GetFlag(FLAGS_synthetic), absl::GetFlag(FLAGS_tokens),
                      absl::GetFlag(FLAGS_seed));
  }));
  PIPELAB_RETURN_IF_ERROR(processes.CheckSame("data", text.description));
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph,
                           BuildGpt(ModelFromFlags(text.data.train->vocabulary())));
  PIPELAB_ASSIGN_OR_RETURN(const ComparisonResult result,
                           Compare(graph, *text.data.train, options));
  if (!processes.speaks()) return absl::OkStatus();

  Report& report = study->report();
  report.AddConfig("parameters", graph.num_parameters());
  report.AddConfig("data", text.description);
  if (processes.group() != nullptr) report.AddConfig("processes", processes.group()->size());
  report.AddConfig("optimizer_used", OptimizerToString(options.optimizer));
  for (const std::string& note : text.notes) report.AddNote(note);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < options.devices) {
    report.AddNote(absl::StrCat("This machine has ", cores, " cores for ", options.devices,
                                " devices: the measured step time shares them; the replayed one "
                                "gives each device its own core."));
  }
  PIPELAB_RETURN_IF_ERROR(AddToReport(options, text.description, result, &report));
  if (!result.machine.has_value()) {
    report.AddNote("Step times are not predicted: links between processes are not measured.");
  }
  report.SetTakeaway(ComparisonTakeaway(result));
  report.AddOverview("schemes", {"step_time_replayed", "peak_activation", "bubble_replayed"});
  AddClaims(result, &report);
  study->FailAtEnd(CheckEquality(result));
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::RegisterOptimizerFlags();
  pipelab::StudyInfo info;
  info.name = "quickstart";
  info.title = "One GPT, several schemes";
  info.summary =
      "Trains one small GPT on Jane Austen's novels under each pipeline scheme and compares "
      "loss, time, bubble, memory and traffic.";
  info.quick = {{"steps", "10"}, {"synthetic", "true"}};
  info.quick_leaves_out = "30 of 40 training steps, and the novels: the text is generated";
  absl::optional<pipelab::Processes> processes;
  info.frame = [&](const std::function<absl::Status()>& work) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(processes, pipelab::Processes::Join());
    return processes->End(work());
  };
  return pipelab::RunStudyMain(
      argc, argv, info, [&](pipelab::StudyRun* study) { return pipelab::Run(*processes, study); });
}
