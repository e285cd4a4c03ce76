#include "pipelines/swarm/peer_stage.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/host_values.h"
#include "models/checkpoint/safetensors.h"
#include "models/data/batch_source.h"
#include "models/data/token_fields.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/whole_state.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// The numbers that came with the pass.
class PeerStage::PassData final : public BatchSource {
 public:
  explicit PassData(const swarm::Job::Model& model)
      : BatchSource(TokenFields(model.tokens(), model.vocabulary())) {}
  void Set(const swarm::Pass* pass) { pass_ = pass; }
  void FillIds(int field, int64_t, int64_t, absl::Span<int32_t> out) const override {
    const auto& ids = field == 0 ? pass_->tokens() : pass_->targets();
    std::copy(ids.begin(), ids.end(), out.begin());  // as many: Check
  }

 private:
  const swarm::Pass* pass_ = nullptr;
};

PeerStage::PeerStage(const swarm::Job& job, int stage)
    : job_(job),
      stage_(stage),
      data_(std::make_unique<PassData>(job.model())),
      backend_(MakeCpuBackend(&arena_)) {}

PeerStage::~PeerStage() = default;

absl::StatusOr<std::unique_ptr<PeerStage>> PeerStage::Create(const swarm::Job& job, int stage) {
  std::unique_ptr<PeerStage> made(new PeerStage(job, stage));
  PIPELAB_ASSIGN_OR_RETURN(made->layout_, LayoutOf(job));
  if (stage < 0 || stage >= job.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " of ", job.stages()));
  }
  LayerStageOptions options;
  options.micro_batch_size = job.micro_batch_size();
  options.data = made->data_.get();
  options.seed = job.seed();
  options.optimizer = OptimizerOf(job);
  options.batch_tokens =
      int64_t{job.micro_batches()} * job.micro_batch_size() * job.model().tokens();
  PIPELAB_ASSIGN_OR_RETURN(made->layers_,
                           LayerStage::Create(made->layout_.graph, made->layout_.partition, stage,
                                              made->backend_.get(), options));
  PIPELAB_ASSIGN_OR_RETURN(const Tensor gradients, made->layers_->Gradients(""));
  made->parameters_ = gradients.size();
  return made;
}

absl::Status PeerStage::Check(const swarm::Pass& pass) const {
  const int64_t version = UpdateRuleOf(job_).VersionOf(pass.step());
  if (version != step() && (older_.empty() || version + 1 != step())) {
    return absl::FailedPreconditionError(absl::StrCat("a pass of step ", pass.step(),
                                                      " with weights of step ", version,
                                                      "; here are those of step ", step()));
  }
  const bool last = stage_ + 1 == job_.stages();
  if (pass.stage() != stage_ || pass.micro_batch() < 0 ||
      pass.micro_batch() >= job_.micro_batches() || (last && !pass.backward())) {
    return absl::InvalidArgumentError(absl::StrCat("no pass of stage ", stage_, ": micro-batch ",
                                                   pass.micro_batch(), " at stage ", pass.stage()));
  }
  const int64_t tokens = int64_t{job_.micro_batch_size()} * job_.model().tokens();
  const int64_t vocabulary = job_.model().vocabulary();
  const auto check = [&](const auto& ids, bool wanted) {
    return ids.size() == (wanted ? tokens : 0) &&
           std::all_of(ids.begin(), ids.end(), [&](int id) { return id >= 0 && id < vocabulary; });
  };
  if (!check(pass.tokens(), stage_ == 0) || !check(pass.targets(), last)) {
    return absl::InvalidArgumentError("a pass with other tokens or targets than the stage reads");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> PeerStage::TensorOf(const swarm::Values& values,
                                                        int64_t numbers, const TensorSpec& spec) {
  PIPELAB_RETURN_IF_ERROR(CheckValues(values, numbers, job_.eight_bits()));
  std::vector<Tensor> tensors;
  tensors.push_back(backend_->Allocate(spec.shape));
  PIPELAB_RETURN_IF_ERROR(FromValues(values, job_.eight_bits(), tensors[0].f32()));
  return tensors;
}

absl::Status PeerStage::Run(const swarm::Pass& pass, swarm::PassDone* done,
                            std::vector<float>* gradient) {
  PIPELAB_RETURN_IF_ERROR(Check(pass));
  const int64_t steps = step();
  const bool older = UpdateRuleOf(job_).VersionOf(pass.step()) != steps;
  if (older) PIPELAB_RETURN_IF_ERROR(SwapOlder());
  PIPELAB_RETURN_IF_ERROR(layers_->SetTrainingStep(pass.step()));  // dropout's
  absl::Status ran = RunChecked(pass, done, gradient);
  ran.Update(layers_->SetTrainingStep(steps));
  if (older) ran.Update(SwapOlder());
  return ran;
}

absl::Status PeerStage::RunChecked(const swarm::Pass& pass, swarm::PassDone* done,
                                   std::vector<float>* gradient) {
  data_->Set(&pass);
  std::vector<Tensor> input, output_gradient;
  const bool last = stage_ + 1 == job_.stages();
  if (stage_ > 0) {
    PIPELAB_ASSIGN_OR_RETURN(
        input, TensorOf(pass.input(), layout_.boundary[stage_ - 1], layers_->InputSpec(0, 0)));
  }
  if (pass.backward() && !last) {
    PIPELAB_ASSIGN_OR_RETURN(
        output_gradient,
        TensorOf(pass.output_gradient(), layout_.boundary[stage_], layers_->OutputSpec(0, 0)));
  }
  Action a;
  a.kind = ActionKind::kForward;
  a.stage = static_cast<int16_t>(stage_);
  a.micro_batch = pass.micro_batch();
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                           layers_->Forward(a, std::move(input), /*drop=*/!pass.backward()));
  if (!pass.backward()) {
    layers_->Forget(a);
  } else {
    if (last) done->set_loss(layers_->losses().at(pass.micro_batch()));
    a.kind = ActionKind::kBackward;
    PIPELAB_ASSIGN_OR_RETURN(results, layers_->Backward(a, std::move(output_gradient)));
    PIPELAB_ASSIGN_OR_RETURN(const Tensor sum, layers_->Gradients(""));
    *gradient = HostValues(sum);
    backend_->Fill(sum, 0);
  }
  if (results.empty()) return absl::OkStatus();
  return ToValues(results[0].f32(), job_.eight_bits(), done->mutable_values());
}

absl::Status PeerStage::Step(absl::Span<const float> gradient) {
  older_ = UpdateRuleOf(job_).VersionOf(step() + 1) == step() ? Values() : ValuesByKey();
  PIPELAB_ASSIGN_OR_RETURN(const Tensor sum, layers_->Gradients(""));
  SetHostValues(sum, gradient);
  Action a;
  a.kind = ActionKind::kStep;
  a.stage = static_cast<int16_t>(stage_);
  return layers_->Step(a);
}

std::vector<StateEntry> PeerStage::Entries() const {
  LayerStage* const stages[] = {layers_.get()};
  std::vector<StateEntry> own;
  for (const StateEntry& entry :
       StateEntries(layout_.graph, TargetOf(job_, layout_).optimizer_state)) {
    if (!PartsOf(entry, stages).empty()) own.push_back(entry);
  }
  return own;
}

PeerStage::ValuesByKey PeerStage::Values() const {
  LayerStage* const stages[] = {layers_.get()};
  ValuesByKey values;
  for (const StateEntry& entry : Entries()) {
    if (entry.kind == 0) values[entry.key] = WholeTensor(entry, stages);
  }
  return values;
}

absl::Status PeerStage::SwapOlder() {
  LayerStage* const stages[] = {layers_.get()};
  ValuesByKey now = Values();
  for (const StateEntry& entry : Entries()) {
    if (entry.kind != 0) continue;
    PIPELAB_RETURN_IF_ERROR(SetWholeTensor(entry, older_.at(entry.key), stages));
  }
  older_ = std::move(now);
  return absl::OkStatus();
}

absl::StatusOr<swarm::State> PeerStage::State() const {
  Safetensors now, older;
  LayerStage* const stages[] = {layers_.get()};
  for (const StateEntry& entry : Entries()) {
    now.tensors[entry.key] = {entry.spec->shape, WholeTensor(entry, stages)};
    const auto it = older_.find(entry.key);
    if (it != older_.end()) older.tensors[entry.key] = {entry.spec->shape, it->second};
  }
  swarm::State state;
  state.set_step(step());
  *state.mutable_safetensors() = SerializeSafetensors(now);
  if (!older_.empty()) *state.mutable_older() = SerializeSafetensors(older);
  return state;
}

absl::Status PeerStage::SetState(const swarm::State& state) {
  PIPELAB_ASSIGN_OR_RETURN(const Safetensors now, ParseSafetensors(state.safetensors(), "a state"));
  Safetensors older;
  if (!state.older().empty()) {
    PIPELAB_ASSIGN_OR_RETURN(older, ParseSafetensors(state.older(), "a state's older values"));
  }
  const auto read = [this](const Safetensors& file,
                           const StateEntry& entry) -> absl::StatusOr<const std::vector<float>*> {
    const auto it = file.tensors.find(entry.key);
    if (it != file.tensors.end() && it->second.shape == entry.spec->shape &&
        std::holds_alternative<std::vector<float>>(it->second.values)) {
      return &std::get<std::vector<float>>(it->second.values);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the state of stage ", stage_, " has no such \"", entry.key, "\""));
  };
  LayerStage* const stages[] = {layers_.get()};
  older_.clear();
  for (const StateEntry& entry : Entries()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float>* values, read(now, entry));
    PIPELAB_RETURN_IF_ERROR(SetWholeTensor(entry, *values, stages));
    if (entry.kind != 0 || UpdateRuleOf(job_).VersionOf(state.step()) == state.step()) continue;
    PIPELAB_ASSIGN_OR_RETURN(values, read(older, entry));
    older_[entry.key] = *values;
  }
  return layers_->SetTrainingStep(state.step());
}

}  // namespace pipelab
