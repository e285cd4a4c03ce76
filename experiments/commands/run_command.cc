// pipelab run: trains a small GPT under a schedule, or a plan's model, on devices of this process
// or of those that mpirun started, beside the serial loop.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/plan_input.h"
#include "experiments/commands/run_devices.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/comparison.h"
#include "experiments/optimizer_flags.h"
#include "experiments/processes.h"
#include "experiments/training.h"
#include "kernels/compute_device.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/data/random_batches.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/ir/versions.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(bool, sequential);
ABSL_FLAG(int, steps, 5, "training steps");
ABSL_FLAG(uint64_t, seed, 1, "of weights, data order and dropout");
ABSL_FLAG(int, layers, 0, "Transformer blocks; 0: as many as the stages need, at least 2");
ABSL_FLAG(std::string, sharding, "replicated",
          "what of its parameters a stage's devices divide: replicated (nothing), optimizer, "
          "gradients, fully");
ABSL_FLAG(int, tensor_parallel, 1,
          "devices that compute each layer together, in the place of each device of the schedule");
ABSL_FLAG(bool, sequence_parallel, false,
          "these devices split the rows outside products (norms, dropout, sums) by tokens");
ABSL_FLAG(int, heads, 0, "attention heads, which --tensor_parallel divides; 0: 2");
ABSL_FLAG(int, wait_limit_s, 60, "seconds that a device waits for another before the run ends");

namespace pipelab {
namespace {

constexpr int64_t kTokens = 16;

// Four tensors of 4 bytes a parameter, in one machine's memory, several times.
constexpr int64_t kMostParameters = 50'000'000;

struct Study {
  std::string source, title;
  ModelGraph graph;
  Schedule schedule;
  std::vector<int> stage_of_layer;  // of a plan; empty: ranges of about as many flops
  bool sequential = false;          // TrainingOptions::sequential
  int64_t micro_batch_samples = 1;
  std::unique_ptr<BatchSource> data;
  int steps = 0;
  uint64_t seed = 0;
  OptimizerOptions optimizer;
  int tensor_parallel = 1;
  bool sequence_parallel = false;
  ComputeDevices devices;
};

// Of the flags alone.
absl::StatusOr<Study> EmptyStudy() {
  Study study;
  study.steps = absl::GetFlag(FLAGS_steps);
  study.seed = absl::GetFlag(FLAGS_seed);
  if (study.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", study.steps, ": must be at least 1"));
  }
  PIPELAB_ASSIGN_OR_RETURN(study.optimizer, OptimizerFromFlags({}, study.steps));
  PIPELAB_ASSIGN_OR_RETURN(study.devices, DevicesFromFlags());
  study.tensor_parallel = absl::GetFlag(FLAGS_tensor_parallel);
  study.sequence_parallel = absl::GetFlag(FLAGS_sequence_parallel);
  if (study.tensor_parallel < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor_parallel=", study.tensor_parallel, ": must be at least 1"));
  }
  if (absl::GetFlag(FLAGS_wait_limit_s) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait_limit_s=", absl::GetFlag(FLAGS_wait_limit_s), ": must be at least 1"));
  }
  return study;
}

// A GPT under a schedule.
absl::StatusOr<Study> StudyOfSchedule(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/false));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  PIPELAB_ASSIGN_OR_RETURN(Study study, EmptyStudy());
  study.source = input.source;
  study.title = "a GPT of % parameters on synthetic text";
  study.schedule = std::move(input.schedule);
  const Schedule& schedule = study.schedule;
  PIPELAB_ASSIGN_OR_RETURN(TextData data, MakeTextData(SyntheticCorpus(/*bytes=*/20000, study.seed),
                                                       kTokens, study.seed));
  // Rows that every group of devices divides.
  for (const auto& replica : schedule.placement.groups) {
    for (const std::vector<int>& group : replica) {
      study.micro_batch_samples =
          std::lcm(study.micro_batch_samples, static_cast<int64_t>(group.size()));
    }
  }
  // Words that every tensor-parallel group divides: the last ones may never come.
  const int64_t known = data.train->vocabulary();
  const int64_t vocabulary =
      known + (study.tensor_parallel - known % study.tensor_parallel) % study.tensor_parallel;
  study.data = std::move(data.train);
  GptConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  // The graph has two layers a block, and two more: one for each stage.
  if (config.layers == 0) config.layers = std::max(2, (schedule.num_stages() - 1) / 2);
  config.hidden = 32;
  config.heads = absl::GetFlag(FLAGS_heads) == 0 ? 2 : absl::GetFlag(FLAGS_heads);
  config.tokens = kTokens;
  config.vocabulary = vocabulary;
  config.dropout = 0.1;
  PIPELAB_ASSIGN_OR_RETURN(study.graph, BuildGpt(config));
  PIPELAB_RETURN_IF_ERROR(
      CheckTensorParallel(study.graph, {study.tensor_parallel, study.sequence_parallel}));
  return study;
}

// A plan's model on random data.
absl::StatusOr<Study> StudyOfPlan(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(PlanInput input, ReadPlanInput(words));
  PIPELAB_ASSIGN_OR_RETURN(Study study, EmptyStudy());
  const int64_t parameters = input.graph.num_parameters();
  if (parameters > kMostParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: ", parameters, " parameters; run trains up to ", kMostParameters,
                     " of them on this machine. simulate takes any model"));
  }
  if (absl::GetFlag(FLAGS_layers) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--layers=", absl::GetFlag(FLAGS_layers), ": ",
                                                   input.source, " is of a model of its own"));
  }
  if (absl::GetFlag(FLAGS_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--heads=", absl::GetFlag(FLAGS_heads), ": ",
                                                   input.source, " is of a model of its own"));
  }
  study.source = input.source;
  study.title = absl::StrCat(input.graph.name, " of % parameters on random data");
  study.schedule = std::move(input.pipeline.schedule);
  study.sequential = absl::GetFlag(FLAGS_sequential);
  study.stage_of_layer = input.pipeline.partition.stage_of_layer;
  study.micro_batch_samples = input.pipeline.micro_batch_samples;
  study.data = std::make_unique<RandomBatches>(
      FieldsOf(input.graph), study.micro_batch_samples * study.schedule.num_micro_batches,
      study.seed);
  study.graph = std::move(input.graph);
  return study;
}

absl::StatusOr<std::vector<double>> TrainSerially(const Study& study, int micro_batches,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices) {
  SerialOptions options;
  options.num_micro_batches = micro_batches;
  options.micro_batch_samples = study.micro_batch_samples;
  options.data = study.data.get();
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.sum_of_micro_batch = std::move(sum_of_micro_batch);
  options.slices = std::move(slices);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> on, study.devices(1));
  Arena arena(on[0].memory);
  const std::unique_ptr<Backend> backend = on[0].make_backend(&arena);
  PIPELAB_ASSIGN_OR_RETURN(auto trainer,
                           SerialTrainer::Create(study.graph, backend.get(), options));
  std::vector<double> losses;
  for (int step = 0; step < study.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer->Step());
    losses.push_back(loss);
  }
  return losses;
}

struct Trained {
  SchemeResult result;  // losses, and what they must equal
  Trace trace;          // of the last step
  Trace predicted;      // of the program's devices
};

absl::StatusOr<Trained> Train(const Study& study, Transport* transport) {
  const Schedule& schedule = study.schedule;
  TrainingOptions options;
  options.schedule = schedule;
  options.micro_batch_samples = study.micro_batch_samples;
  options.stage_of_layer = study.stage_of_layer;
  options.sequential = study.sequential;
  options.devices = study.devices;
  options.tensor_parallel = study.tensor_parallel;
  options.sequence_parallel = study.sequence_parallel;
  PIPELAB_ASSIGN_OR_RETURN(options.lowering.sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.wait_limit = absl::Seconds(absl::GetFlag(FLAGS_wait_limit_s));
  options.transport = transport;
  PIPELAB_ASSIGN_OR_RETURN(auto training,
                           PipelineTraining::Create(study.graph, *study.data, options));
  Trained trained;
  // Terms of a gradient's sum: a group adds one a member.
  trained.result.sizes.micro_batches =
      schedule.num_micro_batches * static_cast<int>(study.micro_batch_samples);
  trained.result.must_be_bit_equal = KeepsMicroBatchOrder(schedule) &&
                                     SumsInLayerOrder(study.graph, training->partition()) &&
                                     study.tensor_parallel == 1;
  if (study.tensor_parallel > 1) trained.result.tensor_terms = SplitTerms(study.graph);
  trained.result.slices = training->slices();
  trained.result.num_slices = schedule.num_slices;
  PIPELAB_ASSIGN_OR_RETURN(trained.predicted, Simulate(training->program(), training->costs()));
  for (int step = 0; step < study.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(TrainingStep done, training->Step());
    trained.result.losses.push_back(done.loss);
    trained.trace = std::move(done.trace);
  }
  return trained;
}

std::string Losses(const std::vector<double>& serial, const Trained& trained) {
  std::string text =
      absl::StrFormat("%4s  %18s  %18s\n", "step", "serial [nats/token]", "this schedule");
  for (size_t i = 0; i < serial.size(); ++i) {
    absl::StrAppendFormat(&text, "%4d  %18.12f  %18.12f  %s\n", i + 1, serial[i],
                          trained.result.losses[i],
                          serial[i] == trained.result.losses[i] ? "equal" : "differs");
  }
  return text;
}

// Of ranks, where groups compute layers together, with what each sends to its group.
std::string Devices(const Trace& trace, bool groups) {
  std::string text = absl::StrFormat("%6s  %16s  %12s  %14s  %8s", groups ? "rank" : "device",
                                     "peak activation", "state", "sent a step", "messages");
  absl::StrAppend(&text, groups ? "  sent to group\n" : "\n");
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& t = trace.devices[d];
    absl::StrAppendFormat(&text, "%6d  %16s  %12s  %14s  %8d", d, ToString(t.peak_activation),
                          ToString(t.peak_state), ToString(t.bytes_sent), t.messages_sent);
    if (groups) absl::StrAppendFormat(&text, "  %13s", ToString(t.tensor_bytes));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// How far what was held and sent is from the simulator's prediction: "to the byte", or the largest
// difference and whose it is.
std::string Prediction(const Trained& trained, int tensor_parallel) {
  double largest = 0;
  std::string text = "to the byte";
  for (size_t rank = 0; rank < trained.trace.devices.size(); ++rank) {
    const DeviceTrace& m = trained.trace.devices[rank];
    const DeviceTrace& p = trained.predicted.devices[rank / tensor_parallel];
    for (const auto& [what, measured, predicted] :
         {std::make_tuple("peak activation", m.peak_activation, p.peak_activation),
          std::make_tuple("state", m.peak_state, p.peak_state),
          std::make_tuple("messages", m.bytes_sent, p.bytes_sent),
          std::make_tuple("collectives", m.collective_bytes, p.collective_bytes),
          std::make_tuple("group's sums", m.tensor_bytes, p.tensor_bytes)}) {
      if (measured == predicted) continue;
      const double off = std::abs(predicted.value() - measured.value()) /
                         static_cast<double>(std::max<int64_t>(1, measured.value()));
      if (off <= largest) continue;
      largest = off;
      text = absl::StrFormat("within %.2f %% (%s of %s %d)", 100 * off, what,
                             tensor_parallel > 1 ? "rank" : "device", rank);
    }
  }
  return absl::StrCat("bytes held and sent: as predicted ", text, "\n");
}

// "4 devices", "4 devices in groups of 2": of the schedule's devices each is a group.
std::string DeviceCount(const Schedule& schedule, int tensor_parallel, const Processes& processes) {
  std::string count = absl::StrCat(schedule.num_devices() * tensor_parallel, " devices");
  if (tensor_parallel > 1) absl::StrAppend(&count, " in groups of ", tensor_parallel);
  if (processes.group() == nullptr) return count;
  return absl::StrCat(count, " in ", processes.group()->size(), " processes");
}

absl::Status TrainAndCompare(const Words& words, const Processes& processes) {
  PIPELAB_ASSIGN_OR_RETURN(const Study study,
                           PlanIsGiven() ? StudyOfPlan(words) : StudyOfSchedule(words));
  const Schedule& schedule = study.schedule;
  PIPELAB_ASSIGN_OR_RETURN(Trained trained, Train(study, processes.transport()));
  if (!processes.speaks()) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> serial,
                           TrainSerially(study, schedule.num_micro_batches, {}, {}));
  const bool replicas = schedule.placement.num_replicas() > 1;
  if (replicas || schedule.num_slices > 1) {
    trained.result.part = replicas ? "replica" : "slice";
    PIPELAB_ASSIGN_OR_RETURN(
        trained.result.serial_by_part,
        TrainSerially(study, schedule.num_micro_batches,
                      replicas ? schedule.placement.replica_of_micro_batch : std::vector<int>(),
                      trained.result.slices));
  }
  Equality equality = CompareLosses(trained.result, serial);
  // Asynchronous schedules step on gradients of older weights: no serial loop has their losses.
  if (HasOwnSteps(schedule)) {
    equality.ok = true;
    equality.text = "asynchronous, so not those of serial training";
  }
  PIPELAB_RETURN_IF_ERROR(WriteOutput(
      "stdout", "-",
      absl::StrFormat(
          "%s: %s, %s, %d micro-batches\n"
          "\n%s\nlosses: %s\n\n%s\n%s",
          study.source,
          absl::StrReplaceAll(study.title, {{"%", absl::StrCat(study.graph.num_parameters())}}),
          DeviceCount(schedule, study.tensor_parallel, processes), schedule.num_micro_batches,
          Losses(serial, trained), equality.text, Devices(trained.trace, study.tensor_parallel > 1),
          Prediction(trained, study.tensor_parallel))));
  if (equality.ok) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(study.source, " does not reproduce serial training: ", equality.text));
}

}  // namespace

absl::Status RunCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(Processes processes, Processes::Join());
  return processes.End(TrainAndCompare(words, processes));
}

}  // namespace pipelab
