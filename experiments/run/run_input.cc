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
#include "pipelines/cost/chain_partition.h"
#include "pipelines/step/model_on_cluster.h"
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

// The study that the flags alone say.
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
  if (absl::GetFlag(FLAGS_wait_limit_s) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait_limit_s=", absl::GetFlag(FLAGS_wait_limit_s), ": must be at least 1"));
  }
  study.wait_limit = absl::Seconds(absl::GetFlag(FLAGS_wait_limit_s));
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
  const int64_t tensor = study->config.tensor;
  const int64_t vocabulary = known + (tensor - known % tensor) % tensor;
  study->title = "a GPT of % parameters on synthetic text";
  study->data = std::move(data.train);
  GptConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  // Passes that exchange attention need as many blocks in each stage; ends have one layer more.
  const int stages = schedule.num_stages();
  const bool exchange = study->config.slice_exchange;
  if (exchange && config.layers == 0) config.layers = stages;
  if (exchange && config.layers % stages == 0) {
    std::vector<int> stage_of_layer = {0};
    for (int layer = 0; layer < 2 * static_cast<int>(config.layers); ++layer) {
      stage_of_layer.push_back(layer / 2 / static_cast<int>(config.layers / stages));
    }
    stage_of_layer.push_back(stages - 1);
    study->config.layout = StagesText(stage_of_layer);
  }
  // The graph has two layers a block, and two more: one for each stage.
  if (config.layers == 0) config.layers = std::max(2, (schedule.num_stages() - 1) / 2);
  config.hidden = 32;
  config.heads = absl::GetFlag(FLAGS_heads) == 0 ? 2 : absl::GetFlag(FLAGS_heads);
  config.tokens = kTokens;
  config.vocabulary = vocabulary;
  config.dropout = 0.1;
  PIPELAB_ASSIGN_OR_RETURN(study->graph, BuildGpt(config));
  const TensorParallel split = study->config.split();
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(study->graph, split));
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(study->graph, split));
  return CheckExpertParallel(study->graph, split, study->schedule.GroupSize(0));
}

// The user's own data, or generated data for any network.
absl::Status OpenData(RunInput* study) {
  const std::string path = absl::GetFlag(FLAGS_data);
  const int64_t batch = study->samples() * study->schedule.num_micro_batches;
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

// These flags are for names, files and plans; a configuration says their values itself.
constexpr const char* kGridFlags[] = {"sharding", "shards", "tensor_parallel", "sequence_parallel",
                                      "batch_norm"};

absl::Status TakeGridFlags(StepConfig* config) {
  config->tensor = absl::GetFlag(FLAGS_tensor_parallel);
  config->sequence_parallel = absl::GetFlag(FLAGS_sequence_parallel);
  if (config->tensor < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor_parallel=", config->tensor, ": must be at least 1"));
  }
  if (config->sequence_parallel && config->tensor == 1) {
    return absl::InvalidArgumentError(
        "--sequence_parallel=true: requires --tensor_parallel above 1, a group to split rows in");
  }
  PIPELAB_ASSIGN_OR_RETURN(config->sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  config->shards = absl::GetFlag(FLAGS_shards);
  const std::string batch_norm = absl::GetFlag(FLAGS_batch_norm);
  const absl::StatusOr<BatchNormCopies> copies = FindBatchNorm(batch_norm);
  if (!copies.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch_norm=", batch_norm, ": ", copies.status().message()));
  }
  config->batch_norm = *copies;
  return absl::OkStatus();
}

absl::Status CheckConfigRuns(const std::string& word, const StepConfig& config) {
  for (const char* flag : kGridFlags) {
    if (!FlagWasSet(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": the configuration ", word, " says its own; give it there"));
  }
  if (config.vocabulary_exchange != VocabularyExchange::kCollectives) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "vocabulary_exchange=collectives: has a price, and nothing that runs; run sends messages, "
      "so leave it out");
}

// Samples of a copy's micro-batch, where a name, a file or flags say the sizes: at least one for
// each device of a group.
absl::Status TakeSamples(RunInput* study) {
  StepConfig& config = study->config;
  const int64_t asked = absl::GetFlag(FLAGS_micro_batch_size);
  const int64_t least = LeastSamples(study->schedule, config.context);
  const int64_t samples = asked == 1 ? least : asked;
  if (samples % least != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--micro_batch_size=", asked,
                                                   ": the groups of devices divide its samples; "
                                                   "must be a multiple of ",
                                                   least));
  }
  config.micro_batch_size = samples / config.data;
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
  study.config = input.config;
  study.schedule = std::move(input.schedule);
  study.own = input.own;
  const bool is_config = words.size() > 1 && IsConfigWord(words[1]);
  PIPELAB_RETURN_IF_ERROR(is_config ? CheckConfigRuns(words[1], study.config)
                                    : TakeGridFlags(&study.config));
  if (!absl::GetFlag(FLAGS_model).empty() || !study.config.model.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const auto on, LoadModelOnCluster(study.config));
    PIPELAB_RETURN_IF_ERROR(CheckTrainable(on->model().graph));
    study.graph = on->model().graph;
    PIPELAB_RETURN_IF_ERROR(OpenData(&study));
    return study;
  }
  if (!absl::GetFlag(FLAGS_data).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data=", absl::GetFlag(FLAGS_data), ": requires --model"));
  }
  if (!is_config) PIPELAB_RETURN_IF_ERROR(TakeSamples(&study));
  study.config.cut = CutRule::kLayers;
  PIPELAB_RETURN_IF_ERROR(MakeSmallGpt(&study));
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
  study.own = true;
  PIPELAB_RETURN_IF_ERROR(TakeGridFlags(&study.config));
  study.config.layout = StagesText(input.pipeline.partition.stage_of_layer);
  study.config.micro_batch_size = input.pipeline.micro_batch_size;
  study.data = std::make_unique<RandomBatches>(
      FieldsOf(input.graph()), study.samples() * study.schedule.num_micro_batches, study.seed);
  study.graph = input.graph();
  return study;
}

}  // namespace

std::map<std::string, std::string> RunInput::CheckpointSettings() const {
  return {{"--micro_batches", absl::StrCat(schedule.num_micro_batches)},
          {"samples a micro-batch", absl::StrCat(samples())},
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
