#include "pipelines/runtime/stage_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Rows of a flat tensor; empty when the tensor is not there.
Tensor View(const Tensor& flat, int64_t begin, int64_t size) {
  return flat.empty() ? Tensor() : flat.Rows(begin, begin + size);
}

Tensor View(const Tensor& flat, int64_t begin, int64_t size, const Shape& shape) {
  const Tensor view = View(flat, begin, size);
  return view.empty() ? view : view.Reshape(shape);
}

}  // namespace

Tensor StageParameters::PartOf(const Tensor& whole) const {
  if (shard_.index < 0) return Tensor();
  const int64_t part = shard_.PartOf(own_size_);
  return whole.Rows(shard_.index * part, (shard_.index + 1) * part);
}

Tensor StageParameters::SteppedGradients() const {
  if (!shard_.travels) return part_of_gradients_;
  return PartOf(travelling_.empty() ? gradients_.own : travelling_);
}

Tensor StageParameters::GradientOf(const Region& r, int use) const {
  if (use > 0) return View(gradients_.own, r.later_uses[use - 1], r.size);
  return View(r.shared ? gradients_.ties : gradients_.own, r.begin, r.size);
}

std::vector<Parameter> StageParameters::OfLayer(int layer, const State& values,
                                                std::vector<Parameter> experts) const {
  std::vector<Parameter> parameters;
  auto next = experts.begin();
  for (const Use& use : uses_.at(layer)) {
    if (use.region < 0) {
      parameters.push_back(std::move(*next++));
      continue;
    }
    const Region& r = regions_[use.region];
    Parameter p;
    p.value = View(r.shared ? values.ties : values.own, r.begin, r.size, use.shape);
    p.gradient = GradientOf(r, use.number);
    if (!p.gradient.empty()) p.gradient = p.gradient.Reshape(use.shape);
    parameters.push_back(std::move(p));
  }
  return parameters;
}

void StageParameters::KeepVersion(int version) {
  const auto copy = [&](const Tensor& from) {
    Tensor to = backend_->arena().Allocate(from.type(), from.shape(), MemoryKind::kParameter);
    CopyTensor(from, to);
    return to;
  };
  kept_[version] = {copy(values_.own), copy(values_.ties)};
  if (experts_) experts_->KeepVersion(version);
}

PartedTensor StageParameters::BeginGather() {
  if (sharded_values()) {
    values_.own = backend_->Allocate({shard_.Padded(own_size_)}, MemoryKind::kParameter);
  }
  return {values_.own, part_of_values_};
}

void StageParameters::Release() {
  if (sharded_values()) values_.own = Tensor();
  if (experts_) experts_->Release();
}

bool StageParameters::PrepareGradients() {
  const bool made = experts_ && experts_->PrepareGradients();
  if (!gradients_.own.empty()) return made;
  gradients_.own = backend_->arena().Zeros(
      DataType::kFloat32, {shard_.Padded(own_size_) + later_size_}, MemoryKind::kGradient);
  return true;
}

PartedTensor StageParameters::BeginScatter() {
  Fold();
  const int64_t whole = shard_.Padded(own_size_);
  if (!sharded_gradients()) return {gradients_.own.Rows(0, whole), part_of_gradients_};
  PrepareGradients();  // a run that added nothing
  scattering_ = std::exchange(gradients_.own, Tensor());
  return {scattering_.Rows(0, whole), PartOf(scattering_)};
}

void StageParameters::EndScatter() {
  if (!sharded_gradients()) return;
  backend_->Add(part_of_gradients_, PartOf(scattering_), part_of_gradients_);
  scattering_ = Tensor();
}

TensorSpec StageParameters::HopSpec(bool gradient) const {
  return {gradient ? DataType::kFloat32 : backend_->activation_type(), {shard_.Padded(own_size_)}};
}

absl::StatusOr<Tensor> StageParameters::SendHop(bool gradient) {
  Fold();
  Tensor sent = values_.own;
  if (gradient) {
    sent = std::exchange(travelling_, Tensor());
    const Tensor own = std::exchange(gradients_.own, Tensor());
    if (sent.empty() && !own.empty()) sent = own.Rows(0, shard_.Padded(own_size_));
  }
  if (sent.empty()) return absl::FailedPreconditionError("there is nothing to send on");
  return sent;
}

void StageParameters::ReceiveHop(bool gradient, Tensor tensor) {
  if (!gradient) {
    values_.own = std::move(tensor);
  } else if (gradients_.own.empty()) {
    travelling_ = std::move(tensor);
  } else {
    Fold();
    const Tensor own = gradients_.own.Rows(0, shard_.Padded(own_size_));
    backend_->Add(tensor, own, own);
  }
}

void StageParameters::Fold() {
  if (folded_) return;
  for (const Region& r : regions_) {
    const Tensor sum = GradientOf(r, 0);
    for (size_t use = 1; use <= r.later_uses.size(); ++use) {
      const Tensor other = GradientOf(r, static_cast<int>(use));
      backend_->Add(sum, other, sum);
      backend_->Fill(other, 0);
    }
  }
  folded_ = true;
}

absl::StatusOr<Tensor> StageParameters::Gradients(absl::string_view tie) {
  Fold();
  if (tie.empty()) {
    return sharded() ? part_of_gradients_ : gradients_.own.Rows(0, own_size_);
  }
  const auto it = region_of_value_.find(std::string(tie));
  if (it == region_of_value_.end() || !regions_[it->second].shared) {
    return absl::NotFoundError(
        absl::StrCat("no parameter of this stage is tied to others as \"", tie, "\""));
  }
  return GradientOf(regions_[it->second], 0);
}

std::pair<int64_t, int64_t> StageParameters::OverlapOf(const Region& r) const {
  const int64_t part = shard_.PartOf(own_size_), first = shard_.index * part;
  const int64_t begin = std::max(r.begin, first);
  return {begin - r.begin, std::max(begin, std::min(r.begin + r.size, first + part)) - r.begin};
}

Tensor StageParameters::SumsOfSquares(const NormShare& share, bool whole) {
  Tensor squares = backend_->AllocateFloats({num_values_});
  std::vector<float> terms(num_values_);
  AddSquares(share, whole, &terms);
  if (experts_) experts_->AddSquares({share.experts, false, {}}, whole, &terms);
  SetHostValues(squares, terms);
  return squares;
}

void StageParameters::AddSquares(const NormShare& share, bool whole, std::vector<float>* terms) {
  Fold();
  const auto add = [&](const Region& r, const Tensor& gradient) {
    if (!whole && r.cut.whole()) return;
    (*terms)[r.number] = static_cast<float>(backend_->optimizer().SumOfSquares(gradient));
  };
  for (const Region& r : regions_) {
    if (r.shared || !share.own || shard_.index < 0) continue;
    const auto [begin, end] = OverlapOf(r);
    const int64_t first = shard_.index * shard_.PartOf(own_size_);
    if (begin < end)
      add(r, SteppedGradients().Rows(r.begin + begin - first, r.begin + end - first));
  }
  for (const std::string& tie : share.ties) {
    const Region& r = regions_[region_of_value_.at(tie)];
    add(r, GradientOf(r, 0));
  }
}

std::vector<Tensor> StageParameters::GradientsOfUndivided() {
  Fold();
  std::vector<Tensor> gradients;
  for (const Region& r : regions_) {
    if (!r.cut.whole()) continue;
    if (r.shared) {
      gradients.push_back(GradientOf(r, 0));
    } else if (shard_.index >= 0) {
      const auto [begin, end] = OverlapOf(r);
      const int64_t first = shard_.index * shard_.PartOf(own_size_);
      if (begin < end) {
        gradients.push_back(
            SteppedGradients().Rows(r.begin + begin - first, r.begin + end - first));
      }
    }
  }
  return gradients;
}

void StageParameters::ScaleGradients(float factor) {
  Fold();
  if (shard_.index >= 0) backend_->optimizer().Scale(SteppedGradients(), factor);
  backend_->optimizer().Scale(gradients_.ties, factor);
  if (experts_) experts_->ScaleGradients(factor);
}

void StageParameters::Step(int64_t step) {
  Fold();
  absl::InlinedVector<Tensor, kMostStateTensors> own, ties;
  for (const State& state : states_) {
    own.push_back(state.own);
    ties.push_back(state.ties);
  }
  if (shard_.index >= 0 && own_size_ > 0) {
    OptimizerStep(optimizer_, step, masters_.own, SteppedGradients(), own, backend_);
  }
  OptimizerStep(optimizer_, step, masters_.ties, gradients_.ties, ties, backend_);
  TakeMasters();
  backend_->Fill(gradients_.ties, 0);
  if (shard_.travels) {
    gradients_.own = travelling_ = Tensor();
  } else {
    backend_->Fill(sharded_gradients() ? part_of_gradients_ : gradients_.own, 0);
  }
  if (experts_) experts_->Step(step);
}

absl::StatusOr<const StageParameters::Region*> StageParameters::Find(absl::string_view name,
                                                                     StateKind kind) const {
  if (static_cast<size_t>(kind) > states_.size()) {
    return absl::NotFoundError(absl::StrCat("the optimizer ", OptimizerKindName(optimizer_.kind),
                                            " keeps ", states_.size(), " tensors of \"", name,
                                            "\""));
  }
  const auto it = region_of_name_.find(name);
  if (it == region_of_name_.end()) {
    return absl::NotFoundError(absl::StrCat("this stage has no parameter \"", name, "\""));
  }
  return &regions_[it->second];
}

void StageParameters::TakeMasters() {
  if (!has_masters()) return;
  if (shard_.index >= 0 && own_size_ > 0) backend_->Copy(masters_.own, part_of_values_);
  backend_->Copy(masters_.ties, values_.ties);
}

std::pair<Tensor, int64_t> StageParameters::KeptIn(const Region& r, const Tensor& own,
                                                   const Tensor& ties, bool whole) const {
  if (r.shared) return {ties.Rows(r.begin, r.begin + r.size), 0};
  if (whole) return {own.Rows(r.begin, r.begin + r.size), 0};
  if (shard_.index < 0) return {ties.Rows(0, 0), 0};
  const auto [begin, end] = OverlapOf(r);
  if (begin >= end) return {own.Rows(0, 0), 0};
  const int64_t first = shard_.index * shard_.PartOf(own_size_);
  return {own.Rows(r.begin + begin - first, r.begin + end - first), begin};
}

std::pair<Tensor, int64_t> StageParameters::KeptValues(const Region& r) const {
  return KeptIn(r, sharded_values() ? part_of_values_ : values_.own, values_.ties,
                !sharded_values());
}

std::pair<Tensor, int64_t> StageParameters::Kept(const Region& r, StateKind kind) const {
  if (kind == StateKind::kValue && !has_masters()) return KeptValues(r);
  const State& state =
      kind == StateKind::kValue ? masters_ : states_[static_cast<size_t>(kind) - 1];
  return KeptIn(r, state.own, state.ties, !sharded());
}

const StageParameters& StageParameters::Having(absl::string_view name) const {
  return experts_ && experts_->region_of_name_.count(name) > 0 ? *experts_ : *this;
}

absl::StatusOr<ParameterPart> StageParameters::CopyPart(absl::string_view name,
                                                        StateKind kind) const {
  if (const StageParameters& having = Having(name); &having != this) {
    return having.CopyPart(name, kind);
  }
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Find(name, kind));
  const auto [kept, begin] = Kept(*region, kind);
  return ParameterPart{begin, HostValues(kept), region->cut};
}

absl::StatusOr<std::vector<float>> StageParameters::Copy(absl::string_view name,
                                                         StateKind kind) const {
  PIPELAB_ASSIGN_OR_RETURN(ParameterPart part, CopyPart(name, kind));
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Having(name).Find(name, kind));
  const int64_t whole = region->size * region->cut.shares();
  if (static_cast<int64_t>(part.values.size()) == whole) return std::move(part.values);
  return absl::FailedPreconditionError(absl::StrCat("this copy of the stage has ",
                                                    part.values.size(), " of the ", whole,
                                                    " elements of \"", name, "\""));
}

absl::Status StageParameters::Set(absl::string_view name, StateKind kind,
                                  absl::Span<const float> from) {
  if (&Having(name) != this) return experts_->Set(name, kind, from);
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Find(name, kind));
  const int64_t whole = region->size * region->cut.shares();
  if (static_cast<int64_t>(from.size()) != whole) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter \"", name, "\" has ", whole, " elements, not ", from.size()));
  }
  const auto set = [&](const std::pair<Tensor, int64_t>& kept) {
    FillOnHost<float>(kept.first, [&](absl::Span<float> values) {
      for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
        values[i] = from[region->cut.WholeIndex(kept.second + i)];
      }
    });
  };
  set(Kept(*region, kind));
  if (kind == StateKind::kValue && has_masters()) set(KeptValues(*region));
  return absl::OkStatus();
}

}  // namespace pipelab
