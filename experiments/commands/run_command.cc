// pipelab run: trains a small GPT under a schedule on in-process devices, beside the serial loop.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/comparison.h"
#include "experiments/optimizer_flags.h"
#include "experiments/training.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/ir/versions.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_FLAG(int, steps, 5, "training steps");
ABSL_FLAG(uint64_t, seed, 1, "of weights, data order and dropout");
ABSL_FLAG(int, layers, 0, "Transformer blocks; 0: as many as the stages need, at least 2");
ABSL_FLAG(std::string, sharding, "replicated",
          "what of its parameters a stage's devices divide: replicated (nothing), optimizer, "
          "gradients, fully");
ABSL_FLAG(int, wait_limit_s, 60, "seconds that a device waits for another before the run ends");

namespace pipelab {
namespace {

constexpr int64_t kTokens = 16;

struct Study {
  ModelGraph graph;
  int64_t micro_batch_samples = 1;
  std::unique_ptr<BatchSource> text;
  int steps = 0;
  uint64_t seed = 0;
  OptimizerOptions optimizer;
};

absl::StatusOr<Study> MakeStudy(const Schedule& schedule) {
  Study study;
  study.steps = absl::GetFlag(FLAGS_steps);
  study.seed = absl::GetFlag(FLAGS_seed);
  if (study.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", study.steps, ": must be at least 1"));
  }
  PIPELAB_ASSIGN_OR_RETURN(study.optimizer, OptimizerFromFlags({}, study.steps));
  if (absl::GetFlag(FLAGS_wait_limit_s) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait_limit_s=", absl::GetFlag(FLAGS_wait_limit_s), ": must be at least 1"));
  }
  PIPELAB_ASSIGN_OR_RETURN(TextData data, MakeTextData(SyntheticCorpus(/*bytes=*/20000, study.seed),
                                                       kTokens, study.seed));
  // Rows that every group of devices divides.
  for (const auto& replica : schedule.placement.groups) {
    for (const std::vector<int>& group : replica) {
      study.micro_batch_samples =
          std::lcm(study.micro_batch_samples, static_cast<int64_t>(group.size()));
    }
  }
  const int64_t vocabulary = data.train->vocabulary();
  study.text = std::move(data.train);
  GptConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  // The graph has two layers a block, and two more: one for each stage.
  if (config.layers == 0) config.layers = std::max(2, (schedule.num_stages() - 1) / 2);
  config.hidden = 32;
  config.heads = 2;
  config.tokens = kTokens;
  config.vocabulary = vocabulary;
  config.dropout = 0.1;
  PIPELAB_ASSIGN_OR_RETURN(study.graph, BuildGpt(config));
  return study;
}

absl::StatusOr<std::vector<double>> TrainSerially(const Study& study, int micro_batches,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices) {
  SerialOptions options;
  options.num_micro_batches = micro_batches;
  options.micro_batch_samples = study.micro_batch_samples;
  options.data = study.text.get();
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.sum_of_micro_batch = std::move(sum_of_micro_batch);
  options.slices = std::move(slices);
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
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
};

absl::StatusOr<Trained> Train(const Study& study, const Schedule& schedule) {
  TrainingOptions options;
  options.schedule = schedule;
  options.micro_batch_samples = study.micro_batch_samples;
  PIPELAB_ASSIGN_OR_RETURN(options.lowering.sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.wait_limit = absl::Seconds(absl::GetFlag(FLAGS_wait_limit_s));
  PIPELAB_ASSIGN_OR_RETURN(auto training,
                           PipelineTraining::Create(study.graph, *study.text, options));
  Trained trained;
  // Terms of a gradient's sum: a group adds one a member.
  trained.result.sizes.micro_batches =
      schedule.num_micro_batches * static_cast<int>(study.micro_batch_samples);
  trained.result.must_be_bit_equal = KeepsMicroBatchOrder(schedule);
  trained.result.slices = training->slices();
  trained.result.num_slices = schedule.num_slices;
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

std::string Devices(const Trace& trace) {
  std::string text = absl::StrFormat("%6s  %16s  %12s  %14s  %8s\n", "device", "peak activation",
                                     "state", "sent a step", "messages");
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& t = trace.devices[d];
    absl::StrAppendFormat(&text, "%6d  %16s  %12s  %14s  %8d\n", d, ToString(t.peak_activation),
                          ToString(t.peak_state), ToString(t.bytes_sent), t.messages_sent);
  }
  return text;
}

}  // namespace

absl::Status RunCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  const Schedule& schedule = input.schedule;
  PIPELAB_ASSIGN_OR_RETURN(const Study study, MakeStudy(schedule));
  PIPELAB_ASSIGN_OR_RETURN(Trained trained, Train(study, schedule));
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
      absl::StrFormat("%s: a GPT of %d parameters on synthetic text, %d devices, %d micro-batches\n"
                      "\n%s\nlosses: %s\n\n%s",
                      input.source, study.graph.num_parameters(), schedule.num_devices(),
                      schedule.num_micro_batches, Losses(serial, trained), equality.text,
                      Devices(trained.trace))));
  if (equality.ok) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(input.source, " does not reproduce serial training: ", equality.text));
}

}  // namespace pipelab
