// What training has made of a model, whole and free of how it was trained: the parts that stages,
// shards and copies hold are put together, so it goes on at any number of stages, under any
// synchronous scheme, or in the serial loop.
//
//   PIPELAB_ASSIGN_OR_RETURN(TrainingState state, training->State());
//   PIPELAB_RETURN_IF_ERROR(WriteTrainingState("a.safetensors", state));
//   ...
//   PIPELAB_ASSIGN_OR_RETURN(TrainingState state, ReadTrainingState("a.safetensors"));
//   PIPELAB_RETURN_IF_ERROR(other->SetState(state));          // all of it, or nothing
//
// Data and dropout are functions of (seed, training step, sample), so nothing else is needed to go
// on with the same bits. Running statistics are those of the first copy of their stage.
//
// Errors: DataLoss for a file that is damaged or no training state (see safetensors.h);
// InvalidArgument for one of another model or training: "FILE: parameter "fc/w" is [3,4] there and
// [3,5] in the model".
#ifndef PIPELAB_MODELS_CHECKPOINT_TRAINING_STATE_H_
#define PIPELAB_MODELS_CHECKPOINT_TRAINING_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/checkpoint/safetensors.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kValueState[] = "value";

struct TrainingState {
  std::string model;  // the graph's name
  // The network that was trained (NetworkText), and a fingerprint of its data
  // (models/data/batch_source.h). Whoever writes a file gives both, and whoever resumes compares
  // them. They are empty in files of version 0.5, which are taken at their word.
  std::string network, data;
  std::string optimizer;        // OptimizerKindName
  uint64_t seed = 1;            // of weights and dropout
  int64_t step = 0;             // training steps done
  int64_t optimizer_steps = 0;  // as many, but in asynchronous schedules
  // "NAME/value" and what the optimizer keeps ("NAME/m"), by ValueName, so tied parameters once;
  // running statistics as "NAME/statistics". All F32.
  std::map<std::string, StoredTensor> tensors;
  // What else the training was; its owner's to write and compare.
  std::map<std::string, std::string> settings;
  std::map<std::string, std::vector<float>> records;  // such as the losses so far
  std::string source = "the training state";          // names it in errors: the file
};

// Each layer in a line with its kind, inputs and attributes.
std::string NetworkText(const ModelGraph& graph);

// A tensor of the state of `graph`, whose specification it has.
struct StateEntry {
  std::string key;  // "block0/mlp/w1/value"
  const ParameterSpec* spec;
  int kind;  // 0: the value; 1, 2: what the optimizer keeps; kStatistics

  static constexpr int kStatistics = -1;
};
// In graph order; `optimizer_state` names what the optimizer keeps of each parameter. A value that
// several parameters have by a tie comes once for each of them, under one key.
std::vector<StateEntry> StateEntries(const ModelGraph& graph,
                                     absl::Span<const absl::string_view> optimizer_state);

// A training that a state is to go into.
struct StateTarget {
  const ModelGraph* graph = nullptr;
  std::string optimizer;
  std::vector<absl::string_view> optimizer_state;
  uint64_t seed = 1;
  int updates_per_step = 1;  // optimizer steps of a training step
};
// OK where the state has exactly the target's tensors and facts, whatever data they are to meet.
absl::Status CheckState(const TrainingState& state, const StateTarget& target);
// The state of a target, without tensors.
TrainingState EmptyState(const StateTarget& target, int64_t step);

// What a file holds. Reading checks it against the sums of names, shapes and numbers in it; `file`
// becomes the source.
std::string SerializeTrainingState(const TrainingState& state);
absl::StatusOr<TrainingState> ParseTrainingState(absl::string_view contents,
                                                 absl::string_view file);

// Makes the file's folder. The file appears whole or stays as it was.
absl::Status WriteTrainingState(absl::string_view path, const TrainingState& state);
absl::StatusOr<TrainingState> ReadTrainingState(absl::string_view path);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_CHECKPOINT_TRAINING_STATE_H_
