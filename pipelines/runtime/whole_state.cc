#include "pipelines/runtime/whole_state.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// NotFound where the stage has none of it.
absl::StatusOr<ParameterPart> PartIn(const LayerStage& stage, const StateEntry& entry) {
  if (entry.kind != StateEntry::kStatistics) {
    return stage.parameters().CopyPart(entry.spec->name, static_cast<StateKind>(entry.kind));
  }
  ParameterPart part;
  PIPELAB_ASSIGN_OR_RETURN(part.values, stage.statistics().Copy(entry.spec->name));
  return part;
}

absl::Status SetIn(LayerStage* stage, const StateEntry& entry, absl::Span<const float> whole) {
  if (entry.kind == StateEntry::kStatistics) {
    return stage->statistics().Set(entry.spec->name, whole);
  }
  return stage->parameters().Set(entry.spec->name, static_cast<StateKind>(entry.kind), whole);
}

}  // namespace

bool SameElements(const ParameterPart& a, const ParameterPart& b) {
  return a.begin == b.begin && a.values.size() == b.values.size() && a.cut == b.cut;
}

std::vector<ParameterPart> PartsOf(const StateEntry& entry, absl::Span<LayerStage* const> stages) {
  std::vector<ParameterPart> parts;
  for (const LayerStage* stage : stages) {
    absl::StatusOr<ParameterPart> part = PartIn(*stage, entry);
    if (!part.ok()) continue;  // another stage's
    const bool known = std::any_of(parts.begin(), parts.end(), [&](const ParameterPart& earlier) {
      return SameElements(earlier, *part);
    });
    if (known) continue;
    parts.push_back(*std::move(part));
    if (static_cast<int64_t>(parts.back().values.size()) == entry.spec->size()) break;
  }
  return parts;
}

std::vector<float> PutTogether(const StateEntry& entry, absl::Span<const ParameterPart> parts) {
  std::vector<float> whole(entry.spec->size());
  std::vector<bool> known(whole.size(), false);
  int64_t left = entry.spec->size();
  for (const ParameterPart& part : parts) {
    for (size_t i = 0; i < part.values.size(); ++i) {
      const size_t at = part.WholeIndex(static_cast<int64_t>(i));
      if (known[at]) continue;  // another copy
      known[at] = true;
      whole[at] = part.values[i];
      --left;
    }
  }
  CHECK_EQ(left, 0) << entry.key;
  return whole;
}

std::vector<float> WholeTensor(const StateEntry& entry, absl::Span<LayerStage* const> stages) {
  return PutTogether(entry, PartsOf(entry, stages));
}

absl::Status SetWholeTensor(const StateEntry& entry, absl::Span<const float> whole,
                            absl::Span<LayerStage* const> stages) {
  for (LayerStage* stage : stages) {
    const absl::Status set = SetIn(stage, entry, whole);
    if (!set.ok() && !absl::IsNotFound(set)) return set;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StepOf(absl::Span<LayerStage* const> stages) {
  const int64_t step = stages[0]->training_step();
  for (const LayerStage* stage : stages) {
    if (stage->training_step() == step) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("stages have done ", step, " and ", stage->training_step(), " steps"));
  }
  return step;
}

absl::StatusOr<TrainingState> WholeState(const StateTarget& target,
                                         absl::Span<LayerStage* const> stages) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t step, StepOf(stages));
  TrainingState state = EmptyState(target, step);
  for (const StateEntry& entry : StateEntries(*target.graph, target.optimizer_state)) {
    if (state.tensors.count(entry.key) > 0) continue;  // a tie's
    state.tensors[entry.key] = {entry.spec->shape, WholeTensor(entry, stages)};
  }
  return state;
}

absl::Status SetWholeState(const TrainingState& state, const StateTarget& target,
                           absl::Span<LayerStage* const> stages) {
  PIPELAB_RETURN_IF_ERROR(CheckState(state, target));
  for (LayerStage* stage : stages) PIPELAB_RETURN_IF_ERROR(stage->SetTrainingStep(state.step));
  for (const StateEntry& entry : StateEntries(*target.graph, target.optimizer_state)) {
    const auto& whole = std::get<std::vector<float>>(state.tensors.at(entry.key).values);
    PIPELAB_RETURN_IF_ERROR(SetWholeTensor(entry, whole, stages));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
