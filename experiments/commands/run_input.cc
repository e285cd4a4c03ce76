#include "experiments/commands/run_input.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/plan_input.h"
#include "experiments/commands/run_devices.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/optimizer_flags.h"
#include "kernels/tensor/tensor.h"
#include "models/data/random_batches.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

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
ABSL_FLAG(std::string, checkpoint, "",
          "file that the training is written to at its end; empty: none");
ABSL_FLAG(int, checkpoint_every, 0, "steps between checkpoints on the way; 0: none");
ABSL_FLAG(std::string, resume, "",
          "checkpoint to go on from: --steps counts its steps too; under any schedule, on any "
          "devices, in any number of processes");

namespace pipelab {
namespace {

constexpr int64_t kTokens = 16;

// Four tensors of 4 bytes a parameter, in one machine's memory, several times.
constexpr int64_t kMostParameters = 50'000'000;

absl::Status TakeCheckpointFlags(RunInput* study) {
  const std::string checkpoint = absl::GetFlag(FLAGS_checkpoint);
  const std::string resume = absl::GetFlag(FLAGS_resume);
  study->checkpoint_every = absl::GetFlag(FLAGS_checkpoint_every);
  if (study->checkpoint_every < 0 || (study->checkpoint_every > 0 && checkpoint.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--checkpoint_every=", study->checkpoint_every,
        study->checkpoint_every < 0 ? ": must be at least 0" : ": give --checkpoint=FILE"));
  }
  if (!checkpoint.empty()) study->checkpoint = ResolveOutputPath(checkpoint, "");
  if (!resume.empty()) study->resume = ResolveOutputPath(resume, "");
  return absl::OkStatus();
}

// Of the flags alone.
absl::StatusOr<RunInput> EmptyStudy() {
  RunInput study;
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
  if (study.sequence_parallel && study.tensor_parallel == 1) {
    return absl::InvalidArgumentError(
        "--sequence_parallel=true: needs a group to split rows in, --tensor_parallel above 1");
  }
  if (absl::GetFlag(FLAGS_wait_limit_s) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait_limit_s=", absl::GetFlag(FLAGS_wait_limit_s), ": must be at least 1"));
  }
  study.wait_limit = absl::Seconds(absl::GetFlag(FLAGS_wait_limit_s));
  PIPELAB_ASSIGN_OR_RETURN(study.sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  PIPELAB_RETURN_IF_ERROR(TakeCheckpointFlags(&study));
  return study;
}

// A GPT under a schedule.
absl::StatusOr<RunInput> StudyOfSchedule(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/false));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  PIPELAB_ASSIGN_OR_RETURN(RunInput study, EmptyStudy());
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
absl::StatusOr<RunInput> StudyOfPlan(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(PlanInput input, ReadPlanInput(words));
  PIPELAB_ASSIGN_OR_RETURN(RunInput study, EmptyStudy());
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

}  // namespace

std::map<std::string, std::string> RunInput::CheckpointSettings() const {
  return {{"--micro_batches", absl::StrCat(schedule.num_micro_batches)},
          {"samples a micro-batch", absl::StrCat(micro_batch_samples)},
          {"activations", DataTypeName(devices.activations())},
          {"optimizer", OptimizerToString(optimizer)}};
}

absl::StatusOr<RunInput> RunInputFromFlags(const Words& words) {
  return PlanIsGiven() ? StudyOfPlan(words) : StudyOfSchedule(words);
}

}  // namespace pipelab
