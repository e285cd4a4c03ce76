#include "experiments/commands/run_flags.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/step/model_on_cluster.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);  // step_input.cc

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
    "forward",          "backward_input", "backward_weight", "p2p_latency",
    "recompute_time",   "step",           "reduce",          "bytes",
    "bandwidth",        "links",          "device_speed",    "atomic_pairs",
    "activation_bytes", "weights",        "workspace",       "optimizer_tensors"};
constexpr const char* kWithModel[] = {"model_time_unit", "cluster", "dtype",     "micro_batch_size",
                                      "layout",          "reserve", "execution", "ranks"};

}  // namespace

absl::Status CheckNoTimesByHand() {
  const std::string given = FirstGiven(kTimesByHand);
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(given, ": times are the model's and the cluster's with --model"));
}

SimulatedRun RunOfStep(StepPrediction prediction) {
  SimulatedRun run;
  run.prediction = std::move(prediction);
  run.has_model = true;
  run.nanoseconds_per_unit = Milliseconds(1).value();
  run.has_bytes = true;
  run.unit = "ms";
  return run;
}

absl::StatusOr<SimulatedRun> RunFromFlags(ScheduleInput input, int least_decimals) {
  if (absl::GetFlag(FLAGS_model).empty() && input.config.model.empty()) {
    if (const std::string given = FirstGiven(kWithModel); !given.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(given, ": requires --model"));
    }
    SimulatedTimes times = TimesFromFlags();
    times.least_decimals = least_decimals;
    return RunSimulated(std::move(input.schedule), times);
  }
  PIPELAB_RETURN_IF_ERROR(CheckNoTimesByHand());
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on,
                           LoadModelOnCluster(input.config));
  PIPELAB_RETURN_IF_ERROR(CheckHasTimes(*on));
  const auto predict = [&input](const StepModel& model) {
    StepCache cache(model);
    if (input.own) cache.AddSchedule(input.config.scheme, {input.schedule});
    return PredictStep(&cache, input.config);
  };
  absl::StatusOr<StepPrediction> prediction = predict(on->step());
  if (!prediction.ok()) return FaultOfModel(prediction.status(), input.config);
  SimulatedRun run = RunOfStep(*std::move(prediction));
  PIPELAB_ASSIGN_OR_RETURN(run.note,
                           CalibrationNote(on->step(), run.prediction.step_time, predict));
  return run;
}

}  // namespace pipelab
