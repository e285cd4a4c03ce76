// A training in a file, to go on from: of one process or of several, with the same bytes.
//
//   CheckpointNotes notes = {{{"--micro_batches", "8"}}, {{"losses", {...}}}};
//   PIPELAB_ASSIGN_OR_RETURN(const CheckpointFile file,
//                            CheckpointFile::Take("--checkpoint", "out/a.safetensors", group));
//   PIPELAB_RETURN_IF_ERROR(SaveCheckpoint("out/a.safetensors", *training, notes, group));
//   ...
//   PIPELAB_ASSIGN_OR_RETURN(TrainingState from, ResumeCheckpoint(
//       "--resume", "out/a.safetensors", notes.settings, group, training.get()));
//
// All of several processes (`group`; null: one) make the same calls, and the first one alone reads
// and writes: the file need not be on a disk that all see. It appears whole or stays as it was.
// Errors are one line with the file, and the rank where there are several; everybody gets them.
#ifndef PIPELAB_EXPERIMENTS_TRAINING_CHECKPOINT_H_
#define PIPELAB_EXPERIMENTS_TRAINING_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "kernels/comm/process_group.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/runtime/training.h"
#include "tools/base/file_lock.h"

namespace pipelab {

// What a file says beside the training's state.
struct CheckpointNotes {
  // What a training that goes on must have in common with it.
  std::map<std::string, std::string> settings;
  std::map<std::string, std::vector<float>> records;
};

// Proves that the file can be written, before long work, and keeps other processes from writing it
// until it goes (tools/base/file_lock.h).
class CheckpointFile {
 public:
  // InvalidArgument or FailedPrecondition naming the option.
  static absl::StatusOr<CheckpointFile> Take(absl::string_view option, const std::string& file,
                                             ProcessGroup* group);

 private:
  absl::optional<FileLock> lock_;  // of the first process
};

// Makes the file's folder as well.
absl::Status SaveCheckpoint(const std::string& file, const PipelineTraining& training,
                            const CheckpointNotes& notes, ProcessGroup* group);

// Writes as the only process. Ctrl-C waits for it, and says from then on that the file was kept,
// followed by `what_for`.
absl::Status WriteCheckpoint(const std::string& file, const TrainingState& state,
                             absl::string_view what_for);

// Gives the file's state to the training, and returns it; in another process than the first without
// its tensors. InvalidArgument where a setting or the data are others.
absl::StatusOr<TrainingState> ResumeCheckpoint(absl::string_view option, const std::string& file,
                                               const std::map<std::string, std::string>& settings,
                                               ProcessGroup* group, PipelineTraining* training);

// Gives a training that has done no step the weights beside the config.json that `model` names
// (models/files/pretrained.h), and returns its state, as above. What the optimizer keeps stays.
absl::StatusOr<TrainingState> StartFromPretrained(absl::string_view option,
                                                  const std::string& model, ProcessGroup* group,
                                                  PipelineTraining* training);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_CHECKPOINT_H_
