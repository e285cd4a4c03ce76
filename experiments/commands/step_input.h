// The training step that a command line names: a configuration, as a word or as flags, of a model
// on a cluster.
//
//   pipelab simulate 1f1b:P=4,T=2,D=8,M=16 --model=gpt-6.6b --cluster=dgx-a100 --dtype=bf16
//
//   PIPELAB_ASSIGN_OR_RETURN(const StepInput input, ReadStepInput(config));
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(input.on->step(), input.config));
//
// model=, cluster= and dtype= of the configuration override the flags of these names. Errors:
// InvalidArgument naming the option; FailedPrecondition for what is wrong in a file.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_STEP_INPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_STEP_INPUT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/units.h"

namespace pipelab {

// Whether a word is a configuration with keys, "1f1b:P=4", and not only a scheme's name.
bool IsConfigWord(const std::string& word);

// The configuration of such a word, or of a scheme's name and the flags of sizes (--devices,
// --micro_batches, ...). InvalidArgument for flags beside the keys of a word.
absl::StatusOr<StepConfig> ConfigFromWord(const std::string& word);

// --model and --cluster, or those of the configuration.
absl::StatusOr<std::unique_ptr<ModelOnCluster>> LoadModelOnCluster(const StepConfig& config);

// The cluster with enough nodes for so many devices (WithNodesFor), and a note on stderr where it
// had fewer.
ClusterSpec GrownTo(int64_t devices, ClusterSpec cluster);

// --launches: under graphs the host's time for each kernel no longer counts.
absl::Status TakeLaunches(ClusterSpec* cluster);

// InvalidArgument, "--cluster: missing, ...", where no cluster is given and a layer was not
// measured.
absl::Status CheckHasTimes(const ModelOnCluster& on);

// Lines for people about a machine that is not calibrated, to stand above its result: that it is
// not, and the step's time at best, expected and worst efficiency. "" for another machine.
// `expected` is what was predicted; `predict` predicts the step again, with the model's cluster
// changed.
absl::StatusOr<std::string> CalibrationNote(
    const StepModel& on, Nanoseconds expected,
    const std::function<absl::StatusOr<StepPrediction>(const StepModel&)>& predict);

// Where a model's times are too long for the simulator and a file gives them, it is at fault, and
// named; `of` is what loaded the model. Other errors stay.
absl::Status FaultOfModel(const absl::Status& status, const StepConfig& of);

// A device's memory is beyond what it has, less --reserve of it. ResourceExhausted (exit code 3)
// saying by how much.
absl::Status CheckMemory(const StepPrediction& prediction);
// --reserve, or where that is not given `unless_set`.
double ReserveFromFlags(double unless_set = 0);
// The bytes that a step may use of a device: all but that share.
absl::StatusOr<Bytes> UsableMemory(Bytes device_memory, double unless_set = 0);

// The fields that every command gives of a step: schema, config, step_ms, bubble, memory_gib, fits,
// tflops_per_device, devices[...].
nlohmann::json StepAsJson(const StepPrediction& prediction);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_STEP_INPUT_H_
