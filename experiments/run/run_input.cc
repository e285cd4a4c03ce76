#include "experiments/run/run_input.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/plan_input.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/run/run_devices.h"
#include "experiments/training/optimizer_flags.h"
#include "kernels/tensor/tensor.h"
#include "models/data/data_file.h"
#include "models/data/random_batches.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(bool, sequential);
ABSL_DECLARE_FLAG(uint64_t, seed);             // time_limit.cc
ABSL_DECLARE_FLAG(int64_t, micro_batch_size);  // step_input.cc
ABSL_DECLARE_FLAG(std::string, model);         // step_input.cc
ABSL_FLAG(int, steps, 5, "training steps");
ABSL_FLAG(int, layers, 0, "Transformer blocks; 0: as many as the stages need, at least 2");
ABSL_FLAG(std::string, sharding, "replicated",
          "what data-parallel copies shard of a stage's state: replicated (nothing), optimizer, "
          "gradients, fully");
ABSL_FLAG(int, shards, 0,
          "copies of a set that divides what is sharded, sets having the same; 0: all");
ABSL_FLAG(int, tensor_parallel, 1,
          "tensor-parallel ranks, which compute each layer together, per device of the schedule");
ABSL_FLAG(std::string, data, "",
          "what to train on: a text, a table (.csv), a folder of pictures (docs/data.md); empty: "
          "generated data");
ABSL_FLAG(std::string, batch_norm, "synchronised",
          "what data-parallel copies normalise by: synchronised (all their rows) or own");
ABSL_FLAG(bool, sequence_parallel, false,
          "tensor-parallel ranks divide what is outside products (norms, dropout, sums) by tokens");
ABSL_FLAG(int, heads, 0, "attention heads, which --tensor_parallel divides; 0: 2");
ABSL_FLAG(int, wait_limit_s, 60, "seconds that a device waits for another before the run ends");
ABSL_FLAG(std::string, checkpoint, "",
          "file to which the training is written at its end; empty: none");
ABSL_FLAG(int, checkpoint_every, 0, "steps between checkpoints; 0: none");
ABSL_FLAG(bool, pretrained, false,
          "start from the weights (safetensors) beside --model's config.json (docs/models.md)");
ABSL_FLAG(std::string, resume, "",
          "checkpoint to resume from, under any schedule, on any devices, in any number of "
          "processes; --steps includes its steps");

namespace pipelab {
namespace {

constexpr int64_t kTokens = 16;

// Four tensors of 4 bytes a parameter, in one machine's memory, several times.
constexpr int64_t kMostTrainedParameters = 50'000'000;

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
  if (absl::GetFlag(FLAGS_pretrained)) {
    if (!resume.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--pretrained=true: the weights are those of --resume=", resume,
                       "; give one of the two"));
    }
    study->pretrained = absl::GetFlag(FLAGS_model);
    if (study->pretrained.empty()) {
      return absl::InvalidArgumentError(
          "--pretrained=true: requires --model=config.json, with safetensors files beside it");
    }
  }
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
        "--sequence_parallel=true: requires --tensor_parallel above 1, a group to split rows in");
  }
  if (absl::GetFlag(FLAGS_wait_limit_s) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait_limit_s=", absl::GetFlag(FLAGS_wait_limit_s), ": must be at least 1"));
  }
  study.wait_limit = absl::Seconds(absl::GetFlag(FLAGS_wait_limit_s));
  PIPELAB_ASSIGN_OR_RETURN(study.lowering.sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  study.lowering.shards = absl::GetFlag(FLAGS_shards);
  const std::string batch_norm = absl::GetFlag(FLAGS_batch_norm);
  const absl::StatusOr<BatchNormCopies> copies = FindBatchNorm(batch_norm);
  if (!copies.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch_norm=", batch_norm, ": ", copies.status().message()));
  }
  study.batch_norm = *copies;
  PIPELAB_RETURN_IF_ERROR(TakeCheckpointFlags(&study));
  return study;
}

absl::Status CheckTrainable(const ModelGraph& graph) {
  const std::vector<DataField> fields = FieldsOf(graph);
  const bool learns = std::any_of(fields.begin(), fields.end(),
                                  [](const DataField& f) { return f.name == kTargets; });
  if (!learns) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: ", graph.name,
                     " has no loss: it says what layers cost, not what they compute. run trains "
                     "models that compute; simulate takes any model"));
  }
  const int64_t parameters = graph.num_parameters();
  if (parameters > kMostTrainedParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: ", parameters, " parameters; run trains up to ",
                     kMostTrainedParameters, " of them on this machine. simulate takes any model"));
  }
  for (const char* flag : {"layers", "heads"}) {
    if (!FlagWasSet(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": of the GPT that is trained without --model"));
  }
  return absl::OkStatus();
}

// Rows that every group of devices divides, `context` of which have the same.
int64_t LeastSamples(const Schedule& schedule, int64_t context) {
  int64_t samples = 1;
  for (const auto& replica : schedule.placement.groups) {
    for (const std::vector<int>& group : replica) {
      samples = std::lcm(samples, static_cast<int64_t>(group.size()) / context);
    }
  }
  return samples;
}

// A small GPT on text of its own, as large as the stages need.
absl::Status MakeSmallGpt(RunInput* study) {
  const Schedule& schedule = study->schedule;
  PIPELAB_ASSIGN_OR_RETURN(
      TextData data,
      MakeTextData(SyntheticCorpus(/*bytes=*/20000, study->seed), kTokens, study->seed));
  // Words that every tensor-parallel group divides: the last ones may never come.
  const int64_t known = data.train->vocabulary();
  const int64_t vocabulary =
      known + (study->tensor_parallel - known % study->tensor_parallel) % study->tensor_parallel;
  study->title = "a GPT of % parameters on synthetic text";
  study->data = std::move(data.train);
  GptConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  // Passes that exchange attention need as many blocks in each stage; ends have one layer more.
  const int stages = schedule.num_stages();
  if (study->lowering.slice_exchange && config.layers == 0) config.layers = stages;
  if (study->lowering.slice_exchange && config.layers % stages == 0) {
    study->stage_of_layer.push_back(0);
    for (int layer = 0; layer < 2 * static_cast<int>(config.layers); ++layer) {
      study->stage_of_layer.push_back(layer / 2 / static_cast<int>(config.layers / stages));
    }
    study->stage_of_layer.push_back(stages - 1);
  }
  // The graph has two layers a block, and two more: one for each stage.
  if (config.layers == 0) config.layers = std::max(2, (schedule.num_stages() - 1) / 2);
  config.hidden = 32;
  config.heads = absl::GetFlag(FLAGS_heads) == 0 ? 2 : absl::GetFlag(FLAGS_heads);
  config.tokens = kTokens;
  config.vocabulary = vocabulary;
  config.dropout = 0.1;
  PIPELAB_ASSIGN_OR_RETURN(study->graph, BuildGpt(config));
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(study->graph, study->split()));
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(study->graph, study->split()));
  return CheckExpertParallel(study->graph, study->split(), study->schedule.GroupSize(0));
}

// The user's own data, or generated data for any network.
absl::Status OpenData(RunInput* study) {
  const std::string path = absl::GetFlag(FLAGS_data);
  const int64_t batch = study->micro_batch_size * study->schedule.num_micro_batches;
  study->title =
      absl::StrCat(study->graph.name, " of % parameters on ", path.empty() ? "random data" : path);
  if (path.empty()) {
    study->data = std::make_unique<RandomBatches>(FieldsOf(study->graph), batch, study->seed);
    return absl::OkStatus();
  }
  DataFileOptions options;
  options.batch_samples = batch;
  options.seed = study->seed;
  PIPELAB_ASSIGN_OR_RETURN(DataFile data, OpenDataFile("--data", path, study->graph, options));
  study->data = std::move(data.train);
  return absl::OkStatus();
}

// The configuration's model, cut and lowered as every command does.
absl::Status TakeStepOf(const ModelOnCluster& on, const StepConfig& config, ScheduleInput input,
                        RunInput* study) {
  StepModel here = on.step();
  here.fold_data = false;
  here.cluster = nullptr;  // whatever the machine, stages are cut by flops
  StepCache cache(here);
  if (input.own) cache.AddSchedule(config.scheme, std::move(input.schedule));
  PIPELAB_ASSIGN_OR_RETURN(const Step step, BuildStep(&cache, config));
  study->schedule = step.program.schedule;
  study->stage_of_layer = step.partition.stage_of_layer;
  study->block_of_layer = step.partition.block_of_layer;
  study->whole_head = !step.partition.unsplit.empty();
  study->micro_batch_size = config.micro_batch_size * config.data;
  study->graph = step.own_graph.value_or(on.model().graph);
  return absl::OkStatus();
}

absl::Status TakeStep(const StepConfig& config, ScheduleInput input, RunInput* study) {
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  PIPELAB_RETURN_IF_ERROR(CheckTrainable(on->model().graph));
  PIPELAB_RETURN_IF_ERROR(TakeStepOf(*on, config, std::move(input), study));
  return OpenData(study);
}

// What a configuration says and flags say as well.
absl::Status TakeConfig(const std::string& word, const StepConfig& config, RunInput* study) {
  if (!IsConfigWord(word)) return absl::OkStatus();
  for (const char* flag :
       {"sharding", "shards", "tensor_parallel", "sequence_parallel", "batch_norm"}) {
    if (!FlagWasSet(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": the configuration ", word, " says its own; give it there"));
  }
  if (config.vocabulary_exchange == VocabularyExchange::kCollectives) {
    return absl::InvalidArgumentError(
        "vocabulary_exchange=collectives: has a price, and nothing that runs; run sends messages, "
        "so leave it out");
  }
  study->tensor_parallel = config.tensor;
  study->sequence_parallel = config.sequence_parallel;
  study->batch_norm = config.batch_norm;
  study->local_heads = config.local_heads;
  PIPELAB_RETURN_IF_ERROR(CheckExecution(config));
  study->lowering = LoweringOf(config);
  return absl::OkStatus();
}

// A network under a schedule.
absl::StatusOr<RunInput> StudyOfSchedule(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/true));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  PIPELAB_ASSIGN_OR_RETURN(RunInput study, EmptyStudy());
  study.source = input.source;
  StepConfig config = input.config;
  study.context_parallel = config.context;
  study.context_exchange = config.context_exchange;
  study.expert_parallel = config.experts;
  study.whole_experts = config.whole_experts;
  if (words.size() > 1) PIPELAB_RETURN_IF_ERROR(TakeConfig(words[1], config, &study));
  config.tensor = study.tensor_parallel;
  config.sequence_parallel = study.sequence_parallel;
  config.batch_norm = study.batch_norm;
  if (!absl::GetFlag(FLAGS_model).empty() || !config.model.empty()) {
    PIPELAB_RETURN_IF_ERROR(TakeStep(config, std::move(input), &study));
    return study;
  }
  if (!absl::GetFlag(FLAGS_data).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data=", absl::GetFlag(FLAGS_data), ": requires --model"));
  }
  study.schedule = std::move(input.schedule);
  const int64_t least = LeastSamples(study.schedule, config.context);
  study.micro_batch_size = config.micro_batch_size * config.data;
  if (!IsConfigWord(input.source)) {
    const int64_t asked = absl::GetFlag(FLAGS_micro_batch_size);
    study.micro_batch_size = asked == 1 ? least : asked;
    if (study.micro_batch_size % least != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--micro_batch_size=", asked,
                                                     ": the groups of devices divide its samples; "
                                                     "must be a multiple of ",
                                                     least));
    }
  }
  PIPELAB_RETURN_IF_ERROR(MakeSmallGpt(&study));
  if (config.divides_vocabulary()) {
    const auto on = ModelOnCluster::Of(study.graph, absl::nullopt, NumberType::kFp32);
    PIPELAB_RETURN_IF_ERROR(TakeStepOf(*on, config, ScheduleInput(), &study));
    return study;
  }
  study.whole_head = !config.split_head;
  PIPELAB_RETURN_IF_ERROR(CheckRebuiltBlocks(config));
  if (config.recompute == Recompute::kBlocks) {
    study.rebuilt = config.rebuilt();
    study.block_of_layer = RebuiltBlocks(study.graph, GroupByName(study.graph).group_of_layer);
  }
  return study;
}

// A plan's model on random data.
absl::StatusOr<RunInput> StudyOfPlan(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(PlanInput input, ReadPlanInput(words));
  PIPELAB_ASSIGN_OR_RETURN(RunInput study, EmptyStudy());
  PIPELAB_RETURN_IF_ERROR(CheckTrainable(input.graph()));
  study.source = input.source;
  study.title = absl::StrCat(input.graph().name, " of % parameters on random data");
  study.schedule = std::move(input.pipeline.schedule);
  study.sequential = absl::GetFlag(FLAGS_sequential);
  study.stage_of_layer = input.pipeline.partition.stage_of_layer;
  study.micro_batch_size = input.pipeline.micro_batch_size;
  study.data = std::make_unique<RandomBatches>(
      FieldsOf(input.graph()), study.micro_batch_size * study.schedule.num_micro_batches,
      study.seed);
  study.graph = input.graph();
  return study;
}

}  // namespace

std::map<std::string, std::string> RunInput::CheckpointSettings() const {
  return {{"--micro_batches", absl::StrCat(schedule.num_micro_batches)},
          {"samples a micro-batch", absl::StrCat(micro_batch_size)},
          {"activations", DataTypeName(devices.activations())},
          {"optimizer", OptimizerToString(optimizer)}};
}

absl::StatusOr<RunInput> RunInputFromFlags(const Words& words) {
  if (PlanIsGiven()) return StudyOfPlan(words);
  PIPELAB_ASSIGN_OR_RETURN(RunInput study, StudyOfSchedule(words));
  if (!study.schedule.forward_only) return study;
  return absl::InvalidArgumentError(absl::StrCat(
      study.source, ": nothing is learned under it, and run compares training; use simulate"));
}

}  // namespace pipelab
