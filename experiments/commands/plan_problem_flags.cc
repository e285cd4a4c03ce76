#include "experiments/commands/plan_problem_flags.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "experiments/commands/run_flags.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/option_checks.h"
#include "experiments/simulate/user_file.h"
#include "models/files/dnn_partitioning_json.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/plan_inputs.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step_config.h"
#include "tools/base/file_fault.h"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);                  // schedule_input.cc
ABSL_DECLARE_FLAG(int, micro_batches);            // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, bandwidth);        // time_flags.cc
ABSL_DECLARE_FLAG(std::string, device_speed);     // time_flags.cc
ABSL_DECLARE_FLAG(std::string, model);            // run_flags.cc
ABSL_DECLARE_FLAG(std::string, model_time_unit);  // run_flags.cc
ABSL_DECLARE_FLAG(int64_t, micro_batch_size);     // run_flags.cc
ABSL_FLAG(std::string, piper_json, "", "an input of Piper to plan; -: stdin");
ABSL_FLAG(std::string, pipedream_profile, "", "a profile of PipeDream to plan; -: stdin");
ABSL_FLAG(std::string, dnn_partitioning_json, "", "an input of dnn-partitioning to plan; -: stdin");
ABSL_FLAG(std::string, memory, "", "memory of a device, such as 8GiB; empty: the input's");
ABSL_FLAG(std::string, machines, "",
          "machines of each network level from the innermost, such as 4,4, for PipeDream's planner "
          "with a --bandwidth for each; empty: one level of all devices");
ABSL_FLAG(bool, blocks, false,
          "with --model: keeps attention and the MLP after it together, and layers without "
          "parameters with their neighbours, so that plans are found faster");

ABSL_FLAG(int64_t, token_step, 0,
          "with --model, for terapipe: slices have a multiple of this many tokens; 0: no slices");
ABSL_FLAG(std::string, sample_sizes, "",
          "with --model: samples of micro-batches that graphpipe may choose from, such as 1,2,4; "
          "empty: --micro_batch_size per copy");

namespace pipelab {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 20;

// What only a --model of layers takes; other inputs have times of their own.
constexpr const char* kOfModels[] = {
    "cluster", "micro_batch_size", "sample_sizes", "token_step", "dtype", "blocks"};

// "8GiB", "25 GB/s", or a plain number of bytes (a second).
template <typename Q>
absl::StatusOr<double> Amount(absl::string_view option, absl::string_view text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && number >= 0 && number <= 1e18) return number;
  const absl::StatusOr<Q> quantity = ParseQuantity<Q>(text);
  if (quantity.ok()) return static_cast<double>(quantity->value());
  return absl::InvalidArgumentError(absl::StrCat(
      option, "=", text, ": ", quantity.status().message(), "; a number alone is bytes"));
}

absl::StatusOr<std::vector<double>> Bandwidths() {
  std::vector<double> all;
  for (absl::string_view word : absl::StrSplit(absl::GetFlag(FLAGS_bandwidth), ',')) {
    PIPELAB_ASSIGN_OR_RETURN(const double b, Amount<BytesPerSecond>("--bandwidth", word));
    if (b == 0) return absl::InvalidArgumentError("--bandwidth=0: must be above 0");
    all.push_back(b);
  }
  return all;
}

absl::Status SetLevels(PlanProblem* problem) {
  const std::string text = absl::GetFlag(FLAGS_machines);
  if (text.empty()) {
    if (problem->bandwidth > 0) problem->levels = {{problem->devices, problem->bandwidth}};
    return absl::OkStatus();
  }
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("--machines=", text, ": ", parts...));
  };
  if (!FlagWasSet("bandwidth")) return error("needs a --bandwidth for each level");
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> bandwidths, Bandwidths());
  problem->levels.clear();
  int64_t devices = 1;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int64_t machines = 0;
    if (!absl::SimpleAtoi(word, &machines) || machines < 1 || devices > kMostDevices / machines) {
      return error("'", word, "' is not a number of machines; write 4,4, at most ", kMostDevices,
                   " in all");
    }
    devices *= machines;
    const size_t level = problem->levels.size();
    if (level >= bandwidths.size())
      return error("more levels than bandwidths (", bandwidths.size(), ")");
    problem->levels.push_back({machines, bandwidths[level]});
  }
  if (problem->levels.size() < bandwidths.size()) {
    return error("fewer levels than bandwidths (", bandwidths.size(), ")");
  }
  if (FlagWasSet("devices") && problem->devices != devices) {
    return error("makes ", devices, " devices, --devices=", problem->devices);
  }
  problem->devices = devices;
  return absl::OkStatus();
}

absl::Status SetMachine(PlanProblem* problem) {
  if (FlagWasSet("devices")) {
    problem->devices = absl::GetFlag(FLAGS_devices);
    PIPELAB_RETURN_IF_ERROR(CheckRange("--devices", problem->devices, 1, kMostDevices));
  }
  if (FlagWasSet("micro_batches")) {
    problem->micro_batches = absl::GetFlag(FLAGS_micro_batches);
    if (problem->micro_batches < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--micro_batches=", problem->micro_batches, ": must be at least 1"));
    }
  }
  if (FlagWasSet("memory")) {
    PIPELAB_ASSIGN_OR_RETURN(problem->memory_bytes,
                             Amount<Bytes>("--memory", absl::GetFlag(FLAGS_memory)));
  }
  if (FlagWasSet("bandwidth")) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> bandwidths, Bandwidths());
    problem->bandwidth = bandwidths.back();
    if (bandwidths.size() > 1 && absl::GetFlag(FLAGS_machines).empty()) {
      return absl::InvalidArgumentError("--bandwidth: several need --machines, such as 4,4");
    }
  }
  return SetLevels(problem);
}

// A speed of each device, or one of all, which is then a unit of time.
absl::Status SetSpeeds(PlanProblem* problem) {
  const std::string text = absl::GetFlag(FLAGS_device_speed);
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    double speed = 0;
    if (!absl::SimpleAtod(word, &speed) || !(speed > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device_speed=", text, ": '", word, "': must be a number above 0"));
    }
    problem->device_speeds.push_back(speed);
  }
  const auto count = static_cast<int64_t>(problem->device_speeds.size());
  if (count == problem->devices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--device_speed=", text, ": ", count,
                                                 " speeds for ", problem->devices, " devices"));
}

absl::StatusOr<std::vector<int64_t>> SampleSizes() {
  const std::string text = absl::GetFlag(FLAGS_sample_sizes);
  std::vector<int64_t> sizes;
  if (text.empty()) return sizes;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(word, &size) || size < (sizes.empty() ? 1 : sizes.back() + 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--sample_sizes=", text, ": must be whole numbers from 1, ascending"));
    }
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<PlanProblem> ProblemOfModel(std::unique_ptr<ModelOnCluster>* kept) {
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(StepConfig()));
  if (on->step().cluster == nullptr) {
    return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
  }
  const ModelGraph& graph = on->model().graph;
  const ClusterSpec& spec = *on->step().cluster;
  const int64_t devices = FlagWasSet("devices") ? absl::GetFlag(FLAGS_devices) : spec.max_devices();
  if (devices < 1 || devices > spec.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--devices=", devices, ": must be from 1 to the ", spec.max_devices(), " of the cluster"));
  }
  const int64_t micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size);
  const int micro_batches = std::max(1, absl::GetFlag(FLAGS_micro_batches));
  PIPELAB_RETURN_IF_ERROR(
      FaultOfModel(CheckCountable(on->step(), micro_batch_size, micro_batches), StepConfig()));
  ModelProblemOptions sizes;
  sizes.type = on->step().type;
  sizes.devices = devices;
  sizes.micro_batch_size = micro_batch_size;
  sizes.batch_samples = micro_batch_size * micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(sizes.micro_batch_sizes, SampleSizes());
  sizes.token_step = absl::GetFlag(FLAGS_token_step);
  if (sizes.token_step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token_step=", sizes.token_step, ": must be from 0"));
  }
  if (absl::GetFlag(FLAGS_blocks)) sizes.group_of_layer = GroupForPlanning(graph).group_of_layer;
  absl::StatusOr<PlanProblem> problem = ModelProblem(graph, spec, sizes);
  if (kept != nullptr) *kept = std::move(on);
  return problem;
}

absl::StatusOr<PlanProblem> FileProblem(const std::string& option, const std::string& path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile(option, path));
  const std::string what = absl::StrCat(option, "=", path);
  if (option == "--piper_json") {
    const std::string unit = absl::GetFlag(FLAGS_model_time_unit);
    if (unit != "s" && unit != "ms") {
      return absl::InvalidArgumentError(
          absl::StrCat("--model_time_unit=", unit, ": must be s or ms"));
    }
    const auto time_unit = unit == "ms" ? PiperTimeUnit::kMilliseconds : PiperTimeUnit::kSeconds;
    PIPELAB_ASSIGN_OR_RETURN(const PiperProblem piper,
                             FaultOfFile(ParsePiper(text, what, time_unit)));
    return PlanProblemOf(piper);
  }
  if (option == "--pipedream_profile") {
    PIPELAB_ASSIGN_OR_RETURN(const PipeDreamProfile profile,
                             FaultOfFile(ParsePipeDreamProfile(text, what)));
    if (!FlagWasSet("bandwidth")) {
      return absl::InvalidArgumentError(
          "--bandwidth: missing; a PipeDream profile does not contain it");
    }
    PlanProblem problem = PlanProblemOf(profile);
    problem.micro_batches = std::max(1, absl::GetFlag(FLAGS_micro_batches));
    return problem;
  }
  PIPELAB_ASSIGN_OR_RETURN(const PlacementProblem placement,
                           FaultOfFile(ParsePlacement(text, what)));
  return FaultOfFile(PlanProblemOf(placement, what));
}

}  // namespace

absl::StatusOr<PlanProblem> PlanProblemFromFlags(std::unique_ptr<ModelOnCluster>* on) {
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"--piper_json", absl::GetFlag(FLAGS_piper_json)},
      {"--pipedream_profile", absl::GetFlag(FLAGS_pipedream_profile)},
      {"--dnn_partitioning_json", absl::GetFlag(FLAGS_dnn_partitioning_json)},
      {"--model", absl::GetFlag(FLAGS_model)}};
  std::vector<std::string> given;
  std::pair<std::string, std::string> input;
  for (const auto& candidate : inputs) {
    if (candidate.second.empty()) continue;
    given.push_back(candidate.first);
    input = candidate;
  }
  if (given.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        given.empty() ? "an input is missing" : absl::StrJoin(given, ", "),
        ": there must be one of --piper_json, --pipedream_profile, --dnn_partitioning_json and "
        "--model"));
  }
  const bool model = input.first == "--model";
  for (const char* name : kOfModels) {
    if (model || !FlagWasSet(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": for --model alone; other inputs have times"));
  }
  PlanProblem problem;
  if (model) {
    PIPELAB_ASSIGN_OR_RETURN(problem, ProblemOfModel(on));
  } else {
    PIPELAB_ASSIGN_OR_RETURN(problem, FileProblem(input.first, input.second));
  }
  problem.name = input.second;
  PIPELAB_RETURN_IF_ERROR(SetMachine(&problem));
  PIPELAB_RETURN_IF_ERROR(SetSpeeds(&problem));
  const absl::Status finished =
      FinishProblem(&problem, absl::StrCat(input.first, "=", input.second));
  if (!finished.ok()) return model ? finished : FaultOfFile(finished);
  return problem;
}

}  // namespace pipelab
