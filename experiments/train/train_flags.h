// The options that every training experiment has (study.h).
//
//   RegisterTrainFlags();                                               // before ParseFlags
//   PIPELAB_ASSIGN_OR_RETURN(TrainSettings settings, SettingsFromFlags(study, run->out()));
//   PIPELAB_RETURN_IF_ERROR(CheckSettings(settings, part));             // against a network
#ifndef PIPELAB_EXPERIMENTS_TRAIN_TRAIN_FLAGS_H_
#define PIPELAB_EXPERIMENTS_TRAIN_TRAIN_FLAGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/train/study.h"
#include "experiments/training/comparison.h"
#include "models/layers/optimizer.h"
#include "models/zoo/local_heads.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/runtime/training.h"

namespace pipelab {

struct TrainSettings {
  std::string study;
  std::string scheme;
  int devices = 1;
  int micro_batches = 1;
  int64_t samples = 1;    // of a micro-batch
  int data_parallel = 1;  // copies that divide it
  Sharding sharding = Sharding::kReplicated;
  int shards = 0;
  int64_t steps = 1;
  int64_t evaluate_every = 1;  // steps between points of the held-out curve
  uint64_t seed = 1;
  std::string layout;
  LocalHead local_heads = LocalHead::kLinear;
  OptimizerOptions optimizer;
  bool synthetic = false, validation = false;
  std::string checkpoint;        // file
  int64_t checkpoint_every = 0;  // steps; 0: at the end and when interrupted
  std::string resume;            // file; empty: from the start
  std::vector<std::string> compare_schemes;
  int64_t compare_steps = 0;  // 0: no comparison
  bool whole_study = false;   // claims are checked

  int64_t batch_samples() const { return micro_batches * samples; }
};

// Makes them options of the program, and those of optimizer_flags.h (study_flags.h).
void RegisterTrainFlags();

// After ParseFlags; `out` is the report's folder. InvalidArgument names the option.
absl::StatusOr<TrainSettings> SettingsFromFlags(const Study& study, absl::string_view out);

// How a part is trained, and how the schemes are compared on it.
TrainingOptions TrainingOptionsOf(const TrainSettings& settings, const StudyPart& part);
ComparisonOptions ComparisonOptionsOf(const TrainSettings& settings, const Study& study,
                                      const StudyPart& part);

// Whether the network can be trained and compared in this way; trains and allocates nothing.
absl::Status CheckSettings(const TrainSettings& settings, const Study& study,
                           const StudyPart& part);

// What a checkpoint must have in common with the training that goes on from it (--resume).
std::map<std::string, std::string> CheckpointSettings(const TrainSettings& settings,
                                                      const StudyWork& work, const StudyPart& part);

// The file of one part: "a.safetensors", with several parts "a.fold_1.safetensors".
std::string FileOfPart(const std::string& file, const StudyPart& part);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_TRAIN_FLAGS_H_
