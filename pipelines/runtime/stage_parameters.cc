#include "pipelines/runtime/stage_parameters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "models/layers/initialize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Ties with a use outside the layers.
std::set<std::string> TiesElsewhere(const ModelGraph& graph, absl::Span<const int> layers) {
  std::set<std::string> ties;
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    if (std::binary_search(layers.begin(), layers.end(), i)) continue;
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!p.tie.empty()) ties.insert(p.tie);
    }
  }
  return ties;
}

// Rows of a flat tensor; empty when the tensor is not there.
Tensor View(const Tensor& flat, int64_t begin, int64_t size) {
  return flat.empty() ? Tensor() : flat.Rows(begin, begin + size);
}

Tensor View(const Tensor& flat, int64_t begin, int64_t size, const Shape& shape) {
  const Tensor view = View(flat, begin, size);
  return view.empty() ? view : view.Reshape(shape);
}

}  // namespace

StageParameters::StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                                 const OptimizerOptions& optimizer, Backend* backend, uint64_t seed,
                                 const Shard& shard)
    : optimizer_(optimizer), backend_(backend), shard_(shard) {
  LayOut(graph, layers);
  Allocate(seed);
  FindUses(graph, layers);
}

void StageParameters::LayOut(const ModelGraph& graph, absl::Span<const int> layers) {
  const std::set<std::string> elsewhere = TiesElsewhere(graph, layers);
  std::vector<int> later_uses;  // regions, in layer order
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      const auto [it, first] =
          region_of_value_.emplace(ValueName(p), static_cast<int>(regions_.size()));
      if (first) {
        Region region;
        region.spec = &p;
        region.shared = elsewhere.count(p.tie) > 0;
        region.size = p.size();
        int64_t& size = region.shared ? ties_size_ : own_size_;
        region.begin = size;
        size += region.size;
        regions_.push_back(region);
      } else {
        later_uses.push_back(it->second);
      }
      region_of_name_[p.name] = it->second;
    }
  }
  for (int region : later_uses) {
    regions_[region].later_uses.push_back(shard_.Padded(own_size_) + later_size_);
    later_size_ += regions_[region].size;
  }
}

void StageParameters::Allocate(uint64_t seed) {
  const auto zeros = [&](int64_t size, MemoryKind kind) {
    return backend_->arena().Zeros(DataType::kFloat32, {size}, kind);
  };
  const int64_t whole = shard_.Padded(own_size_), part = shard_.PartOf(own_size_);
  values_.ties = zeros(ties_size_, MemoryKind::kParameter);
  if (sharded_values()) {
    part_of_values_ = zeros(part, MemoryKind::kParameter);
  } else {
    values_.own = zeros(whole, MemoryKind::kParameter);
    part_of_values_ = PartOf(values_.own);
  }
  gradients_.ties = zeros(ties_size_, MemoryKind::kGradient);
  if (sharded_gradients()) {
    part_of_gradients_ = zeros(part, MemoryKind::kGradient);
  } else {
    gradients_.own = zeros(whole + later_size_, MemoryKind::kGradient);
    part_of_gradients_ = PartOf(gradients_.own);
  }
  states_.resize(StateNames(optimizer_).size());
  for (State& state : states_) {
    state.own = zeros(shard_.index < 0 ? 0 : part, MemoryKind::kOptimizer);
    state.ties = zeros(ties_size_, MemoryKind::kOptimizer);
  }
  std::vector<float> own(sharded_values() ? whole : 0);
  for (Region& r : regions_) {
    const absl::Span<float> place = r.shared           ? values_.ties.f32()
                                    : sharded_values() ? absl::MakeSpan(own)
                                                       : values_.own.f32();
    InitializeParameter(*r.spec, seed, place.subspan(r.begin, r.size));
    r.spec = nullptr;  // the graph need not outlive the constructor
  }
  if (sharded_values()) {
    std::copy_n(own.begin() + shard_.index * part, part, part_of_values_.f32().begin());
  }
}

Tensor StageParameters::PartOf(const Tensor& whole) const {
  if (shard_.index < 0) return Tensor();
  const int64_t part = shard_.PartOf(own_size_);
  return whole.Rows(shard_.index * part, (shard_.index + 1) * part);
}

void StageParameters::FindUses(const ModelGraph& graph, absl::Span<const int> layers) {
  std::vector<int> uses(regions_.size(), 0);
  for (int i : layers) {
    std::vector<Use>& layer = uses_[i];
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      const int region = region_of_value_.at(ValueName(p));
      layer.push_back({region, uses[region]++, Shape(p.shape.begin(), p.shape.end())});
    }
  }
}

Tensor StageParameters::GradientOf(const Region& r, int use) const {
  if (use > 0) return View(gradients_.own, r.later_uses[use - 1], r.size);
  return View(r.shared ? gradients_.ties : gradients_.own, r.begin, r.size);
}

std::vector<Parameter> StageParameters::OfLayer(int layer, const State& values) const {
  std::vector<Parameter> parameters;
  for (const Use& use : uses_.at(layer)) {
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
    Tensor to =
        backend_->arena().Allocate(DataType::kFloat32, from.shape(), MemoryKind::kParameter);
    std::copy(from.f32().begin(), from.f32().end(), to.f32().begin());
    return to;
  };
  kept_[version] = {copy(values_.own), copy(values_.ties)};
}

PartedTensor StageParameters::BeginGather() {
  if (sharded_values()) {
    values_.own = backend_->arena().Allocate(DataType::kFloat32, {shard_.Padded(own_size_)},
                                             MemoryKind::kParameter);
  }
  return {values_.own, part_of_values_};
}

void StageParameters::Release() {
  if (sharded_values()) values_.own = Tensor();
}

bool StageParameters::PrepareGradients() {
  if (!gradients_.own.empty()) return false;
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
    return sharded_gradients() ? part_of_gradients_ : gradients_.own.Rows(0, own_size_);
  }
  const auto it = region_of_value_.find(std::string(tie));
  if (it == region_of_value_.end() || !regions_[it->second].shared) {
    return absl::NotFoundError(
        absl::StrCat("no parameter of this stage is tied to others as \"", tie, "\""));
  }
  return GradientOf(regions_[it->second], 0);
}

void StageParameters::Step(int64_t step) {
  Fold();
  absl::InlinedVector<Tensor, kMostStateTensors> own, ties;
  for (const State& state : states_) {
    own.push_back(state.own);
    ties.push_back(state.ties);
  }
  if (shard_.index >= 0) {
    OptimizerStep(optimizer_, step, part_of_values_, part_of_gradients_, own, backend_);
  }
  OptimizerStep(optimizer_, step, values_.ties, gradients_.ties, ties, backend_);
  backend_->Fill(gradients_.ties, 0);
  backend_->Fill(sharded_gradients() ? part_of_gradients_ : gradients_.own, 0);
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

std::pair<Tensor, int64_t> StageParameters::Kept(const Region& r, StateKind kind) const {
  const State& state = kind == StateKind::kValue ? values_ : states_[static_cast<size_t>(kind) - 1];
  if (r.shared) return {state.ties.Rows(r.begin, r.begin + r.size), 0};
  if (!sharded() || (kind == StateKind::kValue && !sharded_values())) {
    return {state.own.Rows(r.begin, r.begin + r.size), 0};
  }
  if (shard_.index < 0) return {state.own.Rows(0, 0), 0};
  // The overlap of the parameter and the part.
  const int64_t part = shard_.PartOf(own_size_), first = shard_.index * part;
  const int64_t begin = std::max(r.begin, first);
  const int64_t end = std::max(begin, std::min(r.begin + r.size, first + part));
  const Tensor& kept = kind == StateKind::kValue ? part_of_values_ : state.own;
  if (begin >= end) return {kept.Rows(0, 0), 0};
  return {kept.Rows(begin - first, end - first), begin - r.begin};
}

absl::StatusOr<ParameterPart> StageParameters::CopyPart(absl::string_view name,
                                                        StateKind kind) const {
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Find(name, kind));
  const auto [kept, begin] = Kept(*region, kind);
  return ParameterPart{begin, std::vector<float>(kept.f32().begin(), kept.f32().end())};
}

absl::StatusOr<std::vector<float>> StageParameters::Copy(absl::string_view name,
                                                         StateKind kind) const {
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Find(name, kind));
  PIPELAB_ASSIGN_OR_RETURN(ParameterPart part, CopyPart(name, kind));
  if (static_cast<int64_t>(part.values.size()) == region->size) return std::move(part.values);
  return absl::FailedPreconditionError(absl::StrCat("this copy of the stage has ",
                                                    part.values.size(), " of the ", region->size,
                                                    " elements of \"", name, "\""));
}

absl::Status StageParameters::Set(absl::string_view name, StateKind kind,
                                  absl::Span<const float> from) {
  PIPELAB_ASSIGN_OR_RETURN(const Region* region, Find(name, kind));
  if (static_cast<int64_t>(from.size()) != region->size) {
    return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" has ", region->size,
                                                   " elements, not ", from.size()));
  }
  const auto [kept, begin] = Kept(*region, kind);
  std::copy_n(from.begin() + begin, kept.size(), kept.f32().begin());
  return absl::OkStatus();
}

}  // namespace pipelab
