#include "experiments/training/checkpoint.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/waiting.h"
#include "kernels/comm/follow_up.h"
#include "models/files/pretrained.h"
#include "models/graph/layer_spec.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// For one process to read or write a large file on a slow disk.
constexpr absl::Duration kFileLimit = absl::Hours(1);

// An error about the file, which its text may not have.
absl::Status InFile(const std::string& file, const absl::Status& status) {
  if (status.ok() || absl::StrContains(status.message(), file)) return status;
  absl::Status named(status.code(), absl::StrCat(file, ": ", status.message()));
  return IsFollowUp(status) ? MarkAsFollowUp(std::move(named)) : named;
}

// An error about a file that an option names: "--resume=FILE: ...".
absl::Status InOption(absl::string_view option, const std::string& file,
                      const absl::Status& status) {
  if (status.ok() || absl::StrContains(status.message(), absl::StrCat(option, "="))) return status;
  absl::string_view fault = status.message();
  absl::ConsumePrefix(&fault, absl::StrCat(file, ": "));
  absl::Status named(status.code(), absl::StrCat(option, "=", file, ": ", fault));
  return IsFollowUp(status) ? MarkAsFollowUp(std::move(named)) : named;
}

// What a process that is gone was doing.
class Whereabouts {
 public:
  Whereabouts(ProcessGroup* group, absl::string_view doing, const std::string& file)
      : group_(group) {
    if (group == nullptr) return;
    const std::string text = absl::StrCat(doing, " ", file);
    group->SetWhereabouts(ProcessGroup::kProcess, [text] { return text; });
  }
  ~Whereabouts() {
    if (group_ != nullptr) group_->SetWhereabouts(ProcessGroup::kProcess, nullptr);
  }
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;

 private:
  ProcessGroup* const group_;
};

bool IsFirstRank(ProcessGroup* group) { return group == nullptr || group->rank() == 0; }

absl::Status OfAll(ProcessGroup* group, const absl::Status& own) {
  return group == nullptr ? own : group->Agree(own, kFileLimit);
}

absl::StatusOr<TrainingState> ReadFitting(absl::string_view option, const std::string& file,
                                          const std::map<std::string, std::string>& settings) {
  PIPELAB_ASSIGN_OR_RETURN(TrainingState state, ReadTrainingState(file));
  // A file may be older than an option's name.
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : state.settings) {
    absl::string_view flag = name;
    given[absl::ConsumePrefix(&flag, "--") ? absl::StrCat("--", CurrentFlagName(flag)) : name] =
        value;
  }
  for (const auto& [name, value] : settings) {
    const auto it = given.find(name);
    const std::string there = it == given.end() ? "nothing" : it->second;
    if (there == value) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", file, ": trained with ", name, " = ", there, ", not ", value));
  }
  return state;
}

// In another process than the first the state is empty.
absl::Status CheckData(const TrainingState& state, const PipelineTraining& training) {
  const std::string data = state.data.empty() ? "" : training.data();
  if (state.data == data) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("trained on other data: its samples (fingerprint ",
                                                 state.data, ") are not those of this training (",
                                                 data, ")"));
}

// Process 0's state, to the others without its tensors.
absl::StatusOr<TrainingState> FromFirst(ProcessGroup* group, const std::string& file,
                                        TrainingState state) {
  std::string bytes;
  if (group->rank() == 0) {
    auto tensors = std::exchange(state.tensors, {});
    bytes = SerializeTrainingState(state);
    state.tensors = std::move(tensors);
  }
  PIPELAB_ASSIGN_OR_RETURN(bytes, group->FromFirst(bytes, kFileLimit));
  if (group->rank() == 0) return state;
  return ParseTrainingState(bytes, file);
}

}  // namespace

absl::StatusOr<CheckpointFile> CheckpointFile::Take(absl::string_view option,
                                                    const std::string& file, ProcessGroup* group) {
  CheckpointFile taken;
  const auto take = [&]() -> absl::Status {
    PIPELAB_RETURN_IF_ERROR(CheckWritableFile(option, file));
    PIPELAB_ASSIGN_OR_RETURN(taken.lock_, FileLock::Take(option, file));
    return absl::OkStatus();
  };
  PIPELAB_RETURN_IF_ERROR(OfAll(group, IsFirstRank(group) ? take() : absl::OkStatus()));
  return taken;
}

absl::Status SaveCheckpoint(const std::string& file, const PipelineTraining& training,
                            const CheckpointNotes& notes, ProcessGroup* group) {
  const Whereabouts saves(group, "saves", file);
  absl::StatusOr<TrainingState> state = training.State();
  if (!state.ok()) return InFile(file, state.status());
  absl::Status own;
  if (IsFirstRank(group)) {
    state->data = training.data();
    state->settings = notes.settings;
    state->records = notes.records;
    own = WriteCheckpoint(file, *state, ", for --resume");
  }
  return InFile(file, OfAll(group, own));
}

absl::Status WriteCheckpoint(const std::string& file, const TrainingState& state,
                             absl::string_view what_for) {
  Waiting::Output output;
  PIPELAB_RETURN_IF_ERROR(WriteTrainingState(file, state));
  output.Keep(absl::StrCat(file, what_for));
  return absl::OkStatus();
}

absl::StatusOr<TrainingState> ResumeCheckpoint(absl::string_view option, const std::string& file,
                                               const std::map<std::string, std::string>& settings,
                                               ProcessGroup* group, PipelineTraining* training) {
  const Whereabouts goes_on(group, "goes on from", file);
  absl::StatusOr<TrainingState> state = TrainingState();
  if (IsFirstRank(group)) state = ReadFitting(option, file, settings);
  PIPELAB_RETURN_IF_ERROR(OfAll(group, InOption(option, file, state.status())));
  // Another seed is told first, which the data may follow.
  PIPELAB_RETURN_IF_ERROR(InOption(option, file, training->SetState(*state)));
  PIPELAB_RETURN_IF_ERROR(OfAll(group, InOption(option, file, CheckData(*state, *training))));
  if (group == nullptr) return state;
  return FromFirst(group, file, *std::move(state));
}

absl::StatusOr<TrainingState> StartFromPretrained(absl::string_view option,
                                                  const std::string& model, ProcessGroup* group,
                                                  PipelineTraining* training) {
  const Whereabouts starts(group, "starts from", model);
  PIPELAB_ASSIGN_OR_RETURN(TrainingState state, training->State());
  absl::Status own;
  if (IsFirstRank(group)) {
    own = ReadPretrained(option, model, training->graph(),
                         [&](const ParameterSpec& p, std::vector<float> value) {
                           const std::string key = absl::StrCat(ValueName(p), "/", kValueState);
                           state.tensors.at(key).values = std::move(value);
                           return absl::OkStatus();
                         });
  }
  PIPELAB_RETURN_IF_ERROR(OfAll(group, own));
  PIPELAB_RETURN_IF_ERROR(training->SetState(state));
  return state;
}

}  // namespace pipelab
