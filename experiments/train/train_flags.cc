#include "experiments/train/train_flags.h"

#include <algorithm>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "experiments/flags/option_checks.h"
#include "experiments/study/study_flags.h"
#include "experiments/training/optimizer_flags.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, scheme, "1f1b", "scheme that trains");
STUDY_FLAG(int, devices, 4, "pipeline devices; schemes of parallel branches have one per stage");
STUDY_FLAG(int, micro_batches, 4, "micro-batches per step");
STUDY_FLAG(int64_t, micro_batch_size, 16, "samples per micro-batch");
STUDY_FLAG(int, data_parallel, 1, "copies of each pipeline device, which divide a micro-batch");
STUDY_FLAG(std::string, sharding, "replicated",
           "what they shard: replicated (nothing), optimizer, gradients, fully");
STUDY_FLAG(int, shards, 0,
           "copies of a set that divides what is sharded, sets having the same; 0: all");
STUDY_FLAG(int64_t, steps, 500, "training steps");
STUDY_FLAG(int64_t, evaluate_every, 0,
           "steps between points of the held-out curve; 0: a twentieth of the steps");
STUDY_FLAG(uint64_t, seed, 1, "seed of weights, data order and dropout");
STUDY_FLAG(
    std::string, layout, "",
    "layers of each stage, such as 3,2,2,3; empty: balanced by flops, or one stage per branch");
STUDY_FLAG(std::string, local_heads, "linear",
           "heads of stages that learn locally (--scheme=local): linear or convolution");
STUDY_FLAG(bool, synthetic, false, "train on generated data; nothing is fetched or claimed");
STUDY_FLAG(bool, validation, false,
           "hold out a part of the training data, to choose settings by; nothing is claimed");
STUDY_FLAG(std::string, checkpoint, "",
           "file that the training is written to, at its end and when it is interrupted; empty: "
           "--resume's, else NAME.safetensors in --out");
STUDY_FLAG(int64_t, checkpoint_every, 0, "steps between checkpoints; 0: only at the end");
STUDY_FLAG(std::string, resume, "", "checkpoint to resume from, at any --devices and --scheme");
STUDY_FLAG(std::string, compare_schemes, "gpipe,1f1b,breadth_first,graph",
           "schemes whose losses are compared with serial training, beside --scheme");
STUDY_FLAG(int64_t, compare_steps, 5, "steps of that comparison; 0: none");

int64_t DefaultSteps(const Study& study) {
  int64_t steps = 0;
  for (const auto& [name, value] : study.defaults) {
    if (name == "steps" && !absl::SimpleAtoi(value, &steps)) steps = 0;
  }
  return steps;
}

absl::Status CheckFlags(const TrainSettings& s) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", s.steps, 1, kMostSteps));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--micro_batch_size", s.samples, 1, kMostSamples));
  if (s.data_parallel < 1 || s.samples % s.data_parallel != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--data_parallel=", s.data_parallel,
                                                   ": must be at least 1 and divide the ",
                                                   s.samples, " samples of --micro_batch_size"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckShards(s.sharding, s.shards, s.data_parallel));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--micro_batches", s.micro_batches, 1, kMostMicroBatches));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--evaluate_every", s.evaluate_every, 0, kMostSteps));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--checkpoint_every", s.checkpoint_every, 0, kMostSteps));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--compare_steps", s.compare_steps, 0, kMostSteps));
  return FindScheme(s.scheme).status();
}

// Runs branches side by side, where the network has some and no layout says otherwise.
bool TakesBranches(const TrainSettings& settings, const StudyPart& part) {
  const auto scheme = FindScheme(settings.scheme);
  return scheme.ok() && ((*scheme)->options & kStageGraph) != 0 &&
         !TakesVocabularyParts(**scheme) && settings.layout.empty() &&
         !part.parallel_stages.empty();
}

}  // namespace

void RegisterTrainFlags() {
  RegisterStudyFlags(__FILE__);
  RegisterOptimizerFlags();
}

absl::StatusOr<TrainSettings> SettingsFromFlags(const Study& study, absl::string_view out) {
  TrainSettings s;
  s.study = study.name;
  s.scheme = absl::GetFlag(FLAGS_scheme);
  s.devices = absl::GetFlag(FLAGS_devices);
  s.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  s.samples = absl::GetFlag(FLAGS_micro_batch_size);
  s.data_parallel = absl::GetFlag(FLAGS_data_parallel);
  PIPELAB_ASSIGN_OR_RETURN(s.sharding, ParseSharding(absl::GetFlag(FLAGS_sharding)));
  s.shards = absl::GetFlag(FLAGS_shards);
  s.steps = absl::GetFlag(FLAGS_steps);
  s.evaluate_every = absl::GetFlag(FLAGS_evaluate_every);
  s.seed = absl::GetFlag(FLAGS_seed);
  s.layout = absl::GetFlag(FLAGS_layout);
  const std::string heads = absl::GetFlag(FLAGS_local_heads);
  const absl::StatusOr<LocalHead> local_heads = FindLocalHead(heads);
  if (!local_heads.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--local_heads=", heads, ": ", local_heads.status().message()));
  }
  s.local_heads = *local_heads;
  s.synthetic = absl::GetFlag(FLAGS_synthetic);
  s.validation = absl::GetFlag(FLAGS_validation);
  s.checkpoint_every = absl::GetFlag(FLAGS_checkpoint_every);
  s.compare_schemes = absl::StrSplit(absl::GetFlag(FLAGS_compare_schemes), ',', absl::SkipEmpty());
  s.compare_steps = absl::GetFlag(FLAGS_compare_steps);
  PIPELAB_RETURN_IF_ERROR(CheckFlags(s));
  PIPELAB_ASSIGN_OR_RETURN(s.optimizer, OptimizerFromFlags(study.optimizer, s.steps));
  if (s.evaluate_every == 0) s.evaluate_every = std::max<int64_t>(1, s.steps / 20);
  const std::string resume = absl::GetFlag(FLAGS_resume);
  const std::string checkpoint = absl::GetFlag(FLAGS_checkpoint);
  if (!resume.empty()) s.resume = ResolveOutputPath(resume, study.name);
  if (!checkpoint.empty()) {
    s.checkpoint = ResolveOutputPath(checkpoint, study.name);
  } else if (!resume.empty()) {
    s.checkpoint = s.resume;
  } else {
    s.checkpoint = JoinPath(out, absl::StrCat(study.name, ".safetensors"));
  }
  s.whole_study = !s.synthetic && !s.validation && s.steps >= DefaultSteps(study);
  return s;
}

TrainingOptions TrainingOptionsOf(const TrainSettings& settings, const StudyPart& part) {
  TrainingOptions options;
  options.config.scheme = settings.scheme;
  options.config.pipeline = settings.devices;
  options.config.micro_batches = settings.micro_batches;
  options.config.data = settings.data_parallel;
  options.config.micro_batch_size = settings.samples / settings.data_parallel;
  options.config.sharding = settings.sharding;
  options.config.shards = settings.shards;
  options.config.layout = settings.layout;
  options.config.local_heads = settings.local_heads;
  if (TakesBranches(settings, part)) {
    options.config.layout = StagesText(part.parallel_stages);
    options.config.pipeline =
        1 + *std::max_element(part.parallel_stages.begin(), part.parallel_stages.end());
  }
  options.seed = settings.seed;
  options.optimizer = settings.optimizer;
  options.trace = false;
  return options;
}

ComparisonOptions ComparisonOptionsOf(const TrainSettings& settings, const Study& study,
                                      const StudyPart& part) {
  ComparisonOptions options;
  options.schemes = settings.compare_schemes;
  options.schemes_option = "--compare_schemes";
  auto& names = options.schemes;
  // The scheme that trains is among them, so that its memory is, too.
  const auto scheme = FindScheme(settings.scheme);
  if (scheme.ok() && !(*scheme)->asynchronous &&
      std::find(names.begin(), names.end(), settings.scheme) == names.end()) {
    names.push_back(settings.scheme);
  }
  if (part.parallel_stages.empty()) {  // there, graph is 1F1B
    names.erase(std::remove(names.begin(), names.end(), "graph"), names.end());
  }
  options.devices = settings.devices;
  options.micro_batches = settings.micro_batches;
  options.micro_batch_size = settings.samples;
  options.steps = static_cast<int>(settings.compare_steps);
  options.seed = settings.seed;
  options.optimizer = settings.optimizer;
  options.parallel_stages = part.parallel_stages;
  options.loss_unit = study.loss_unit;
  options.curves_title = "Training loss under each scheme";
  return options;
}

absl::Status CheckSettings(const TrainSettings& settings, const Study& study,
                           const StudyPart& part) {
  PIPELAB_RETURN_IF_ERROR(CheckMemory(part.graph, settings.samples));
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(settings.scheme));
  if ((scheme->options & kForwardOnly) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--scheme=", settings.scheme, ": nothing is learned under it"));
  }
  const bool branches = TakesBranches(settings, part);
  SchemeParams sizes = SchemeSizes(TrainingOptionsOf(settings, part).config);
  if (branches) {
    PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                             MakePartition(part.graph, part.parallel_stages));
    sizes.stages = partition.stages;
  }
  PIPELAB_ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(settings.scheme, sizes));
  if (!branches) {
    PIPELAB_RETURN_IF_ERROR(
        ChoosePartition(part.graph, schedule.num_stages(), settings.samples, settings.layout)
            .status());
  }
  if (settings.compare_steps == 0) return absl::OkStatus();
  const ComparisonOptions comparison = ComparisonOptionsOf(settings, study, part);
  if (comparison.schemes.empty()) {
    return absl::InvalidArgumentError(
        "--compare_schemes=: no scheme for this network; --compare_steps=0 compares none");
  }
  return CheckComparison(part.graph, comparison);
}

std::map<std::string, std::string> CheckpointSettings(const TrainSettings& settings,
                                                      const StudyWork& work,
                                                      const StudyPart& part) {
  std::map<std::string, std::string> all = {
      {"study", settings.study},
      {"part", part.name},
      {"data", work.data},
      {"held out", settings.validation ? "a part of the training data" : "the held-out part"},
      {"--micro_batches", absl::StrCat(settings.micro_batches)},
      {"--micro_batch_size", absl::StrCat(settings.samples)},
      {"optimizer", OptimizerToString(settings.optimizer)}};
  all.insert(part.settings.begin(), part.settings.end());
  return all;
}

std::string FileOfPart(const std::string& file, const StudyPart& part) {
  if (part.name.empty()) return file;
  constexpr absl::string_view kEnding = ".safetensors";
  absl::string_view stem = file;
  const bool ends = absl::ConsumeSuffix(&stem, kEnding);
  return absl::StrCat(stem, ".", part.name, ends ? kEnding : "");
}

}  // namespace pipelab
