// The part of SerialTrainer that hands out and takes what training changes.
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/serial_trainer.h"
#include "tools/base/status_macros.h"

namespace pipelab {

const Tensor* SerialTrainer::FindValue(const std::string& name) const {
  for (const LayerSpec& layer : graph_.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.name == name) return &values_.at(ValueName(p)).master;
    }
  }
  const auto it = statistics_.find(name);
  return it == statistics_.end() ? nullptr : &it->second;
}

absl::StatusOr<std::vector<float>> SerialTrainer::ParameterValue(const std::string& name) const {
  const Tensor* found = FindValue(name);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("the model has no parameter \"", name, "\""));
  }
  return HostValues(*found);
}

absl::Status SerialTrainer::SetParameterValue(const std::string& name,
                                              absl::Span<const float> value) {
  const Tensor* found = FindValue(name);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("the model has no parameter \"", name, "\""));
  }
  if (static_cast<int64_t>(value.size()) != found->size()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" has ", found->size(),
                                                   " elements, not ", value.size()));
  }
  SetHostValues(*found, value);
  TakeMasters();
  return absl::OkStatus();
}

StateTarget SerialTrainer::Target() const {
  StateTarget target;
  target.graph = &graph_;
  target.optimizer = OptimizerKindName(options_.optimizer.kind);
  const auto names = StateNames(options_.optimizer);
  target.optimizer_state.assign(names.begin(), names.end());
  target.seed = options_.seed;
  target.updates_per_step = Updates();
  return target;
}

const Tensor& SerialTrainer::StateTensor(const StateEntry& entry) const {
  if (entry.kind == StateEntry::kStatistics) return statistics_.at(entry.spec->name);
  const Value& v = values_.at(ValueName(*entry.spec));
  return entry.kind == 0 ? v.master : v.state[entry.kind - 1];
}

TrainingState SerialTrainer::State() const {
  const StateTarget target = Target();
  TrainingState state = EmptyState(target, step_);
  for (const StateEntry& entry : StateEntries(graph_, target.optimizer_state)) {
    state.tensors[entry.key] = {entry.spec->shape, HostValues(StateTensor(entry))};
  }
  return state;
}

absl::Status SerialTrainer::SetState(const TrainingState& state) {
  const StateTarget target = Target();
  PIPELAB_RETURN_IF_ERROR(CheckState(state, target));
  for (const StateEntry& entry : StateEntries(graph_, target.optimizer_state)) {
    const auto& from = std::get<std::vector<float>>(state.tensors.at(entry.key).values);
    SetHostValues(StateTensor(entry), from);
  }
  TakeMasters();
  step_ = state.step;
  return absl::OkStatus();
}

}  // namespace pipelab
