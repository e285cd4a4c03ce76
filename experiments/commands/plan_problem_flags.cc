#include "experiments/commands/plan_problem_flags.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "experiments/flags.h"
#include "models/files/model_file.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "models/files/placement_json.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/plan/grid_config.h"
#include "pipelines/plan/model_problem.h"
#include "pipelines/plan/plan_inputs.h"
#include "tools/base/file.h"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);                  // schedule_input.cc
ABSL_DECLARE_FLAG(int, micro_batches);            // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, bandwidth);        // time_flags.cc
ABSL_DECLARE_FLAG(std::string, device_speed);     // time_flags.cc
ABSL_DECLARE_FLAG(std::string, model);            // run_flags.cc
ABSL_DECLARE_FLAG(std::string, model_time_unit);  // run_flags.cc
ABSL_DECLARE_FLAG(std::string, cluster);          // run_flags.cc
ABSL_DECLARE_FLAG(std::string, number_type);      // run_flags.cc
ABSL_DECLARE_FLAG(int64_t, samples);              // run_flags.cc
ABSL_FLAG(std::string, piper_json, "", "an input of Piper to plan; -: stdin");
ABSL_FLAG(std::string, pipedream_profile, "", "a profile of PipeDream to plan; -: stdin");
ABSL_FLAG(std::string, dnn_partitioning_json, "", "an input of dnn-partitioning to plan; -: stdin");
ABSL_FLAG(std::string, memory, "", "bytes of a device, such as 8GiB; empty: the input's own");
ABSL_FLAG(std::string, machines, "",
          "machines of each network level from the innermost, such as 4,4, for PipeDream's planner "
          "with a --bandwidth for each; empty: one level of all devices");
ABSL_FLAG(
    bool, blocks, false,
    "with --model: a block's or cell's layers stay together, which makes plans faster to find");

ABSL_FLAG(int64_t, token_step, 0,
          "with --model, for terapipe: slices have a multiple of so many tokens; 0: no slices");
ABSL_FLAG(std::string, sample_sizes, "",
          "with --model: samples of micro-batches that graphpipe may choose from, such as 1,2,4; "
          "empty: --samples a copy");

namespace pipelab {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 30;

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
      return error("'", word, "' is not a number of machines; write 4,4");
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
    if (problem->devices < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", problem->devices, ": must be at least 1"));
    }
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

absl::StatusOr<PlanProblem> ProblemOfModel() {
  const std::string model = absl::GetFlag(FLAGS_model), cluster = absl::GetFlag(FLAGS_cluster);
  if (cluster.empty()) {
    return absl::InvalidArgumentError("--cluster: missing; --model needs a name or a file");
  }
  ModelFileOptions options;
  if (absl::GetFlag(FLAGS_model_time_unit) == "ms") {
    options.piper_unit = PiperTimeUnit::kMilliseconds;
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", model, options));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec spec, LoadCluster("--cluster", cluster));
  NumberType type = NarrowestType(spec.device);
  if (!absl::GetFlag(FLAGS_number_type).empty()) {
    PIPELAB_ASSIGN_OR_RETURN(type, FindNumberType(absl::GetFlag(FLAGS_number_type)));
  }
  const int64_t devices = FlagWasSet("devices") ? absl::GetFlag(FLAGS_devices) : spec.max_devices();
  if (devices < 1 || devices > spec.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--devices=", devices, ": must be from 1 to the ", spec.max_devices(), " of the cluster"));
  }
  const int64_t samples = absl::GetFlag(FLAGS_samples);
  if (samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--samples=", samples, ": must be at least 1"));
  }
  ModelProblemOptions sizes;
  sizes.type = type;
  sizes.devices = devices;
  sizes.samples = samples;
  sizes.batch_samples = samples * std::max(1, absl::GetFlag(FLAGS_micro_batches));
  PIPELAB_ASSIGN_OR_RETURN(sizes.sample_sizes, SampleSizes());
  sizes.token_step = absl::GetFlag(FLAGS_token_step);
  if (sizes.token_step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token_step=", sizes.token_step, ": must be from 0"));
  }
  return ModelProblem(graph, spec, sizes);
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
    PIPELAB_ASSIGN_OR_RETURN(
        const PiperProblem piper,
        ParsePiper(text, what,
                   unit == "ms" ? PiperTimeUnit::kMilliseconds : PiperTimeUnit::kSeconds));
    return PlanProblemOf(piper);
  }
  if (option == "--pipedream_profile") {
    PIPELAB_ASSIGN_OR_RETURN(const PipeDreamProfile profile, ParsePipeDreamProfile(text, what));
    if (!FlagWasSet("bandwidth")) {
      return absl::InvalidArgumentError(
          "--bandwidth: missing; a profile of PipeDream does not say it");
    }
    return PlanProblemOf(profile);
  }
  PIPELAB_ASSIGN_OR_RETURN(const PlacementProblem placement, ParsePlacement(text, what));
  return PlanProblemOf(placement, what);
}

}  // namespace

absl::StatusOr<std::string> ReadUserFile(absl::string_view option, const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  const absl::StatusOr<std::string> text = ReadFile(ResolveOutputPath(path, ""));
  if (text.ok()) return text;
  return absl::FailedPreconditionError(
      absl::StrCat(option, "=", path, ": ", text.status().message()));
}

absl::StatusOr<PlanProblem> PlanProblemFromFlags() {
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
  if (!model && FlagWasSet("cluster")) {
    return absl::InvalidArgumentError("--cluster: for --model alone; other inputs have times");
  }
  PlanProblem problem;
  if (model) {
    PIPELAB_ASSIGN_OR_RETURN(problem, ProblemOfModel());
  } else {
    PIPELAB_ASSIGN_OR_RETURN(problem, FileProblem(input.first, input.second));
  }
  problem.name = input.second;
  if (!model && FlagWasSet("sample_sizes")) {
    return absl::InvalidArgumentError("--sample_sizes: for --model alone; others have no times");
  }
  PIPELAB_RETURN_IF_ERROR(SetMachine(&problem));
  PIPELAB_RETURN_IF_ERROR(SetSpeeds(&problem));
  PIPELAB_RETURN_IF_ERROR(FinishProblem(&problem, absl::StrCat(input.first, "=", input.second)));
  return problem;
}

}  // namespace pipelab
