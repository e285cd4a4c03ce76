#include "tests/support/fake_module.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kPrime = 1009;  // products of two values and sums of many are exact in float32

int64_t At(const Tensor& t, int64_t i) { return static_cast<int64_t>(t.f32()[i]); }

// `width` values, and zeros up to `padded`.
Tensor Parameters(Arena* arena, int64_t width, MemoryKind kind, int64_t start, int64_t padded = 0) {
  Tensor t = arena->Zeros(DataType::kFloat32, {std::max(width, padded)}, kind);
  if (kind != MemoryKind::kParameter) return t;
  for (int64_t c = 0; c < width; ++c) t.f32()[c] = static_cast<float>((start + 17 * c) % kPrime);
  return t;
}

// Every weight moves by its gradient and by the norm.
void StepParameters(Tensor& weight, Tensor& gradient, int64_t norm) {
  for (int64_t c = 0; c < weight.size(); ++c) {
    weight.f32()[c] = static_cast<float>((At(weight, c) + At(gradient, c) + norm) % kPrime);
    gradient.f32()[c] = 0;
  }
}

}  // namespace

FakeStage::FakeStage(Arena* arena, FakeStageConfig config)
    : arena_(arena), config_(std::move(config)) {
  const int64_t padded = config_.shard.Padded(config_.width);
  weight_ = Parameters(arena_, config_.width, MemoryKind::kParameter, 100 + config_.stage, padded);
  part_ = PartOf(weight_);
  if (config_.shard.travels) {
    weight_ = part_;  // none but the owner's
  } else if (sharded_values()) {
    Tensor part = arena_->Allocate(DataType::kFloat32, part_.shape(), MemoryKind::kParameter);
    std::copy(part_.f32().begin(), part_.f32().end(), part.f32().begin());
    part_ = std::move(part);
    weight_ = Tensor();
  }
  if (sharded_gradients()) {
    if (!config_.shard.travels)
      part_gradient_ = Parameters(arena_, part_.size(), MemoryKind::kGradient, 0);
  } else {
    gradient_ = Parameters(arena_, padded, MemoryKind::kGradient, 0);
    part_gradient_ = PartOf(gradient_);
  }
  if (config_.tied.empty()) return;
  tied_weight_ = Parameters(arena_, 2 * config_.width, MemoryKind::kParameter, 500);
  tied_gradient_ = Parameters(arena_, 2 * config_.width, MemoryKind::kGradient, 0);
}

Tensor FakeStage::PartOf(const Tensor& whole) const {
  if (config_.shard.index < 0) return Tensor();
  const int64_t part = config_.shard.PartOf(config_.width);
  return whole.Rows(config_.shard.index * part, (config_.shard.index + 1) * part);
}

absl::StatusOr<PartedTensor> FakeStage::BeginGather() {
  if (sharded_values()) {
    if (!weight_.empty()) return absl::FailedPreconditionError("gathered twice");
    weight_ = arena_->Zeros(DataType::kFloat32, {config_.shard.Padded(config_.width)},
                            MemoryKind::kParameter);
  }
  return PartedTensor{weight_, part_};
}

absl::Status FakeStage::Release() {
  if (weight_.empty()) return absl::FailedPreconditionError("released twice");
  weight_ = Tensor();
  return absl::OkStatus();
}

Tensor FakeStage::SteppedGradient() const {
  if (!config_.shard.travels) return part_gradient_;
  return PartOf(travelling_.empty() ? gradient_ : travelling_);
}

TensorSpec FakeStage::HopSpec(bool) const {
  return {DataType::kFloat32, {config_.shard.Padded(config_.width)}};
}

absl::StatusOr<Tensor> FakeStage::SendHop(bool gradient) {
  Tensor sent = weight_;
  if (gradient) {
    sent = travelling_.empty() ? gradient_ : travelling_;
    gradient_ = travelling_ = Tensor();
  }
  if (sent.empty()) return absl::FailedPreconditionError("there is nothing to send on");
  return sent;
}

absl::Status FakeStage::ReceiveHop(bool gradient, Tensor tensor) {
  if (!gradient) {
    if (!weight_.empty()) return absl::FailedPreconditionError("its weights are there");
    weight_ = std::move(tensor);
  } else if (gradient_.empty()) {
    travelling_ = std::move(tensor);
  } else {
    for (int64_t i = 0; i < tensor.size(); ++i) gradient_.f32()[i] += tensor.f32()[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<PartedTensor> FakeStage::BeginScatter() {
  if (!sharded_gradients()) return PartedTensor{gradient_, part_gradient_};
  if (gradient_.empty()) return absl::FailedPreconditionError("nothing to reduce");
  if (!scattering_.empty()) return absl::FailedPreconditionError("a reduction is under way");
  scattering_ = std::move(gradient_);
  return PartedTensor{scattering_, PartOf(scattering_)};
}

absl::Status FakeStage::EndScatter() {
  if (!sharded_gradients()) return absl::OkStatus();
  const Tensor sum = PartOf(scattering_);
  for (int64_t i = 0; i < sum.size(); ++i) part_gradient_.f32()[i] += sum.f32()[i];
  scattering_ = Tensor();
  return absl::OkStatus();
}

absl::Status FakeStage::CheckGathered(const Action& a) const {
  if (!weight_.empty()) return absl::OkStatus();
  return WrongOrder(a, "its weights are not put together");
}

TensorSpec FakeStage::Spec() const { return {DataType::kFloat32, {Rows(), config_.width}}; }

absl::Status FakeStage::WrongOrder(const Action& a, absl::string_view why) const {
  return absl::FailedPreconditionError(absl::StrCat(ToString(a), ": ", why));
}

Tensor FakeStage::Combine(const Action& a, const std::vector<Tensor>& inputs) {
  Tensor x = arena_->Allocate(DataType::kFloat32, Spec().shape, MemoryKind::kActivation);
  for (int64_t i = 0; i < x.size(); ++i) {
    const Place at = PlaceOf(a, i / config_.width);
    const int64_t c = i % config_.width;
    int64_t value = 0;
    if (inputs.empty()) value = at.micro_batch * 101 + a.slice * 37 + at.row * 11 + c;  // the data
    for (size_t e = 0; e < inputs.size(); ++e)
      value += static_cast<int64_t>(e + 2) * At(inputs[e], i);
    x.f32()[i] = static_cast<float>(value % kPrime);
  }
  return x;
}

absl::StatusOr<std::vector<Tensor>> FakeStage::Forward(const Action& a, std::vector<Tensor> inputs,
                                                       bool drop) {
  ++library_ns_;
  const auto key = std::make_pair(int{a.micro_batch}, int{a.slice});
  if (stash_.count(key) > 0) return WrongOrder(a, "a second forward");
  PIPELAB_RETURN_IF_ERROR(CheckGathered(a));
  if (a.slice > 0 && stash_.count({a.micro_batch, a.slice - 1}) == 0) {
    return WrongOrder(a, "before the slice that it attends to");
  }
  const Tensor x = Combine(a, inputs);
  std::vector<Tensor> outputs;
  for (size_t o = 0; o < config_.graph->out_edges[config_.stage].size(); ++o) {
    Tensor y = arena_->Allocate(DataType::kFloat32, Spec().shape, MemoryKind::kActivation);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t c = i % config_.width;
      int64_t value = 3 * At(x, i) + At(weight_, c) + config_.stage + 7 * static_cast<int64_t>(o);
      if (!tied_weight_.empty()) value += At(tied_weight_, c);
      y.f32()[i] = static_cast<float>(value % kPrime);
    }
    outputs.push_back(std::move(y));
  }
  Stash& stash = stash_[key];
  if (drop) {
    stash.inputs = std::move(inputs);
  } else {
    stash.x = x;
  }
  return outputs;
}

absl::Status FakeStage::Recompute(const Action& a) {
  ++library_ns_;
  const auto at = stash_.find({a.micro_batch, a.slice});
  if (at == stash_.end()) return WrongOrder(a, "nothing to rebuild");
  if (!at->second.x.empty()) return WrongOrder(a, "nothing was dropped");
  at->second.x = Combine(a, at->second.inputs);
  at->second.inputs.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor*>> FakeStage::Kept(const Action& a) {
  const auto at = stash_.find({a.micro_batch, a.slice});
  if (at == stash_.end()) return WrongOrder(a, "no forward");
  if (at->second.input_gradient_done) return WrongOrder(a, "after the input gradient");
  return std::vector<Tensor*>{&at->second.x};
}

absl::StatusOr<std::vector<Tensor>> FakeStage::Backward(const Action& a,
                                                        std::vector<Tensor> output_gradients) {
  ++library_ns_;
  const auto at = stash_.find({a.micro_batch, a.slice});
  if (at == stash_.end()) return WrongOrder(a, "no forward");
  PIPELAB_RETURN_IF_ERROR(CheckGathered(a));
  Stash& stash = at->second;
  if (stash.x.empty()) return WrongOrder(a, "no recompute");
  if (stash.input_gradient_done) return WrongOrder(a, "a second input gradient");
  const auto later = stash_.find({a.micro_batch, a.slice + 1});
  if (later != stash_.end() && !later->second.input_gradient_done) {
    return WrongOrder(a, "before the later slice");
  }
  // A stage has the loss if its outputs bring no gradient back.
  const bool has_loss = std::all_of(output_gradients.begin(), output_gradients.end(),
                                    [](const Tensor& t) { return t.empty(); });
  stash.dy = arena_->Allocate(DataType::kFloat32, Spec().shape, MemoryKind::kActivation);
  for (int64_t i = 0; i < stash.dy.size(); ++i) {
    const Place place = PlaceOf(a, i / config_.width);
    int64_t value = 0;
    if (has_loss) {
      value = place.micro_batch * 13 + a.slice * 5 + place.row;
    }
    for (size_t o = 0; o < output_gradients.size(); ++o) {
      if (output_gradients[o].empty()) continue;
      value += static_cast<int64_t>(o + 3) * At(output_gradients[o], i);
    }
    stash.dy.f32()[i] = static_cast<float>(value % kPrime);
  }
  std::vector<Tensor> inputs;
  const std::vector<int>& in_edges = config_.graph->in_edges[config_.stage];
  for (size_t e = 0; e < in_edges.size(); ++e) {
    if (config_.graph->edges[in_edges[e]].gradient.none()) {
      inputs.emplace_back();
      continue;
    }
    Tensor dx = arena_->Allocate(DataType::kFloat32, Spec().shape, MemoryKind::kActivation);
    for (int64_t i = 0; i < dx.size(); ++i) {
      const int64_t c = i % config_.width;
      const int64_t value = static_cast<int64_t>(e + 2) * (5 * At(stash.dy, i) + At(weight_, c));
      dx.f32()[i] = static_cast<float>(value % kPrime);
    }
    inputs.push_back(std::move(dx));
  }
  stash.input_gradient_done = true;
  if (a.kind == ActionKind::kBackward) {
    AccumulateWeightGradient(stash);
    stash_.erase(at);
  }
  return inputs;
}

absl::Status FakeStage::BackwardWeight(const Action& a) {
  ++library_ns_;
  const auto at = stash_.find({a.micro_batch, a.slice});
  if (at == stash_.end()) return WrongOrder(a, "no forward");
  if (!at->second.input_gradient_done) return WrongOrder(a, "no input gradient");
  AccumulateWeightGradient(at->second);
  stash_.erase(at);
  return absl::OkStatus();
}

void FakeStage::AccumulateWeightGradient(const Stash& stash) {
  if (gradient_.empty()) {
    gradient_ = Parameters(arena_, config_.shard.Padded(config_.width), MemoryKind::kGradient, 0);
  }
  for (int64_t i = 0; i < stash.x.size(); ++i) {
    const int64_t c = i % config_.width, x = At(stash.x, i), dy = At(stash.dy, i);
    gradient_.f32()[c] += static_cast<float>(x * dy % kPrime);
    if (tied_gradient_.empty()) continue;
    tied_gradient_.f32()[c] += static_cast<float>((x + 2 * dy) % kPrime);
    tied_gradient_.f32()[config_.width + c] += static_cast<float>(dy);
  }
}

absl::StatusOr<Tensor> FakeStage::BeginNorm(const NormShare& share) {
  Tensor terms = arena_->Zeros(DataType::kFloat32, {config_.norm_values}, MemoryKind::kActivation);
  // The sum of elements in the place of the sum of squares: exact, whatever the order.
  const auto add = [&](int64_t place, const Tensor& gradient) {
    int64_t sum = 0;
    for (int64_t i = 0; i < gradient.size(); ++i) sum += At(gradient, i);
    terms.f32()[place] += static_cast<float>(sum % kPrime);
  };
  if (share.own) add(config_.stage, SteppedGradient());
  for (const std::string& tie : share.ties) {
    if (tie != config_.tied) return absl::NotFoundError(absl::StrCat("no parameter ", tie));
    add(config_.norm_values - 1, tied_gradient_);
  }
  return terms;
}

absl::Status FakeStage::EndNorm(const Tensor& squares) {
  int64_t sum = 0;
  for (int64_t i = 0; i < squares.size(); ++i) sum += At(squares, i);
  norm_ = sum % kPrime;
  return absl::OkStatus();
}

absl::Status FakeStage::Step(const Action& a) {
  ++library_ns_;
  if (config_.norm_values > 0 && !norm_.has_value()) return WrongOrder(a, "no norm");
  const int64_t shift = norm_.value_or(0);
  norm_.reset();
  Tensor gradient = SteppedGradient();
  if (config_.shard.index >= 0) StepParameters(part_, gradient, shift);
  if (config_.shard.travels) gradient_ = travelling_ = Tensor();
  for (float& g : gradient_.empty() ? absl::Span<float>() : gradient_.f32()) g = 0;
  if (!tied_weight_.empty()) StepParameters(tied_weight_, tied_gradient_, shift);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FakeStage::Gradients(absl::string_view parameter) {
  if (parameter.empty()) {
    return config_.shard.parts > 1 ? part_gradient_ : gradient_.Rows(0, config_.width);
  }
  if (parameter == config_.tied) return tied_gradient_;
  return absl::NotFoundError(absl::StrCat("stage ", config_.stage, " has no ", parameter));
}

bool FakeStage::KeepsPartOf(const std::vector<float>& parameters) const {
  const int64_t part = config_.shard.PartOf(config_.width);
  const int64_t first = weight_.empty() ? config_.shard.index * part : 0;
  const Tensor& kept = weight_.empty() ? part_ : weight_;
  for (int64_t i = 0; i < (kept.empty() ? 0 : kept.size()) && first + i < config_.width; ++i) {
    if (kept.f32()[i] != parameters[first + i]) return false;
  }
  for (int64_t i = 0; i < (tied_weight_.empty() ? 0 : tied_weight_.size()); ++i) {
    if (tied_weight_.f32()[i] != parameters[config_.width + i]) return false;
  }
  return true;
}

std::vector<float> FakeStage::parameters() const {
  std::vector<float> all(weight_.f32().begin(), weight_.f32().end());
  if (!tied_weight_.empty()) {
    all.insert(all.end(), tied_weight_.f32().begin(), tied_weight_.f32().end());
  }
  return all;
}

}  // namespace pipelab
