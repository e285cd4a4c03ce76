#include "experiments/commands/run_flags.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/model_run.h"
#include "experiments/commands/user_file.h"
#include "models/files/model_file.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, model, "",
          "a published model's name, or a file of layers with their costs (docs/models.md): times "
          "and memory are then the model's, in milliseconds and bytes");
ABSL_FLAG(std::string, model_time_unit, "s", "of the times in a file of Piper's: s or ms");
ABSL_FLAG(std::string, cluster, "",
          "the machine for --model: a name or a file (docs/clusters.md); empty: all layers were "
          "measured, and messages take no time");
ABSL_FLAG(std::string, number_type, "",
          "that the machine computes with: fp32, tf32, bf16 or fp16; empty: fp32 where it can");
ABSL_FLAG(int64_t, samples, 1, "samples a micro-batch, with --model");
ABSL_FLAG(std::string, layout, "",
          "layers of each stage, with --model: 3,2,2,3 or 0-2;3,4;5-9; empty: stages of about the "
          "same time");

namespace pipelab {
namespace {

// --NAME=VALUE of the first of the flags that was given.
template <size_t n>
std::string FirstGiven(const char* const (&names)[n]) {
  for (const char* name : names) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag != nullptr && flag->CurrentValue() != flag->DefaultValue()) {
      return absl::StrCat("--", name, "=", flag->CurrentValue());
    }
  }
  return "";
}

constexpr const char* kTimesByHand[] = {
    "forward",        "backward_input", "backward_weight", "hop",
    "recompute_time", "step",           "reduce",          "bytes",
    "bandwidth",      "links",          "device_speed",    "atomic_pairs",
    "kept",           "weights",        "workspace",       "optimizer_tensors"};
constexpr const char* kWithModel[] = {"model_time_unit", "cluster", "number_type", "samples",
                                      "layout"};

}  // namespace

absl::StatusOr<ModelGraph> ModelFromFlags() {
  const std::string word = absl::GetFlag(FLAGS_model);
  const std::string unit = absl::GetFlag(FLAGS_model_time_unit);
  ModelFileOptions options;
  if (unit == "ms") {
    options.piper_unit = PiperTimeUnit::kMilliseconds;
  } else if (unit != "s") {
    return absl::InvalidArgumentError(
        absl::StrCat("--model_time_unit=", unit, ": must be s or ms"));
  }
  absl::StatusOr<ModelGraph> graph = FindModel("--model", word, options);
  if (!graph.ok()) return FaultOfWord(word, graph.status());
  return graph;
}

absl::StatusOr<ModelRunOptions> ModelOptionsFromFlags() {
  ModelRunOptions options;
  options.samples = absl::GetFlag(FLAGS_samples);
  options.layout = absl::GetFlag(FLAGS_layout);
  if (!absl::GetFlag(FLAGS_cluster).empty()) {
    PIPELAB_ASSIGN_OR_RETURN(options.cluster, ClusterFromFlags());
  }
  PIPELAB_ASSIGN_OR_RETURN(options.type, NumberTypeFromFlags());
  return options;
}

absl::StatusOr<ClusterSpec> ClusterFromFlags() {
  const std::string word = absl::GetFlag(FLAGS_cluster);
  if (word.empty()) {
    return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
  }
  absl::StatusOr<ClusterSpec> cluster = LoadCluster("--cluster", word);
  if (!cluster.ok()) return FaultOfWord(word, cluster.status());
  return cluster;
}

absl::StatusOr<absl::optional<NumberType>> NumberTypeFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_number_type);
  if (name.empty()) return absl::optional<NumberType>();
  const absl::StatusOr<NumberType> type = FindNumberType(name);
  if (type.ok()) return absl::optional<NumberType>(*type);
  return absl::InvalidArgumentError(
      absl::StrCat("--number_type=", name, ": ", type.status().message()));
}

absl::Status CheckNoTimesByHand() {
  const std::string given = FirstGiven(kTimesByHand);
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(given, ": times are the model's and the cluster's with --model"));
}

absl::StatusOr<PaperRun> RunFromFlags(Schedule schedule, int least_decimals) {
  PaperTimes times = TimesFromFlags();
  if (absl::GetFlag(FLAGS_model).empty()) {
    if (const std::string given = FirstGiven(kWithModel); !given.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(given, ": says more of --model; give one"));
    }
    times.least_decimals = least_decimals;
    return RunOnPaper(std::move(schedule), times);
  }
  PIPELAB_RETURN_IF_ERROR(CheckNoTimesByHand());
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, ModelFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(ModelRunOptions options, ModelOptionsFromFlags());
  options.overlap = times.overlap;
  return RunModelOnPaper(graph, std::move(schedule), options);
}

}  // namespace pipelab
