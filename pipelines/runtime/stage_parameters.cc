#include "pipelines/runtime/stage_parameters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/initialize.h"

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

Tensor View(const Tensor& flat, int64_t begin, const ParameterSpec& spec) {
  return flat.Rows(begin, begin + spec.size()).Reshape(Shape(spec.shape.begin(), spec.shape.end()));
}

}  // namespace

StageParameters::StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                                 Backend* backend, uint64_t seed)
    : backend_(backend) {
  LayOut(graph, layers);
  Allocate(seed);
  BindLayers(graph, layers);
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
        regions_.push_back(region);
      } else {
        later_uses.push_back(it->second);
      }
      region_of_name_[p.name] = it->second;
    }
  }
  for (bool shared : {false, true}) {
    for (Region& r : regions_) {
      if (r.shared != shared) continue;
      r.begin = value_size_;
      r.gradient_begins = {value_size_};
      value_size_ += r.size;
    }
    if (!shared) own_size_ = value_size_;
  }
  gradient_size_ = value_size_;
  for (int region : later_uses) {
    regions_[region].gradient_begins.push_back(gradient_size_);
    gradient_size_ += regions_[region].size;
  }
}

void StageParameters::Allocate(uint64_t seed) {
  Arena& arena = backend_->arena();
  values_ = arena.Zeros(DataType::kFloat32, {value_size_}, MemoryKind::kParameter);
  gradients_ = arena.Zeros(DataType::kFloat32, {gradient_size_}, MemoryKind::kGradient);
  m_ = arena.Zeros(DataType::kFloat32, {value_size_}, MemoryKind::kOptimizer);
  v_ = arena.Zeros(DataType::kFloat32, {value_size_}, MemoryKind::kOptimizer);
  for (Region& r : regions_) {
    InitializeParameter(*r.spec, seed, values_.f32().subspan(r.begin, r.size));
    r.spec = nullptr;  // the graph need not outlive the constructor
  }
}

void StageParameters::BindLayers(const ModelGraph& graph, absl::Span<const int> layers) {
  std::vector<size_t> uses(regions_.size(), 0);
  for (int i : layers) {
    std::vector<Parameter> parameters;
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      const int index = region_of_value_.at(ValueName(p));
      const Region& r = regions_[index];
      parameters.push_back(
          {View(values_, r.begin, p), View(gradients_, r.gradient_begins[uses[index]++], p)});
    }
    of_layer_[i] = std::move(parameters);
  }
}

std::vector<Parameter> StageParameters::OfLayer(int layer, int version) const {
  const Tensor& kept = kept_.at(version);
  std::vector<Parameter> parameters = OfLayer(layer);
  for (Parameter& p : parameters) {
    const int64_t begin = p.value.f32().data() - values_.f32().data();
    p.value = kept.Rows(begin, begin + p.value.size()).Reshape(p.value.shape());
  }
  return parameters;
}

void StageParameters::KeepVersion(int version) {
  Tensor copy =
      backend_->arena().Allocate(DataType::kFloat32, {value_size_}, MemoryKind::kParameter);
  std::copy(values_.f32().begin(), values_.f32().end(), copy.f32().begin());
  kept_[version] = std::move(copy);
}

void StageParameters::Fold() {
  if (folded_) return;
  for (const Region& r : regions_) {
    const Tensor sum = gradients_.Rows(r.gradient_begins[0], r.gradient_begins[0] + r.size);
    for (size_t use = 1; use < r.gradient_begins.size(); ++use) {
      const int64_t at = r.gradient_begins[use];
      const Tensor other = gradients_.Rows(at, at + r.size);
      backend_->Add(sum, other, sum);
      backend_->Fill(other, 0);
    }
  }
  folded_ = true;
}

absl::StatusOr<Tensor> StageParameters::Gradients(absl::string_view tie) {
  Fold();
  if (tie.empty()) return gradients_.Rows(0, own_size_);
  const auto it = region_of_value_.find(std::string(tie));
  if (it == region_of_value_.end() || !regions_[it->second].shared) {
    return absl::NotFoundError(
        absl::StrCat("no parameter of this stage is tied to others as \"", tie, "\""));
  }
  const Region& r = regions_[it->second];
  return gradients_.Rows(r.begin, r.begin + r.size);
}

void StageParameters::Step(const AdamOptions& options) {
  Fold();
  backend_->optimizer().Adam(options, values_, gradients_.Rows(0, value_size_), m_, v_);
  backend_->Fill(gradients_, 0);
}

absl::StatusOr<Tensor> StageParameters::StateOf(absl::string_view name, StateKind kind) const {
  const auto it = region_of_name_.find(name);
  if (it == region_of_name_.end()) {
    return absl::NotFoundError(absl::StrCat("this stage has no parameter \"", name, "\""));
  }
  const Region& r = regions_[it->second];
  const Tensor& flat = kind == StateKind::kValue ? values_ : kind == StateKind::kAdamM ? m_ : v_;
  return flat.Rows(r.begin, r.begin + r.size);
}

absl::StatusOr<std::vector<float>> StageParameters::Copy(absl::string_view name,
                                                         StateKind kind) const {
  const absl::StatusOr<Tensor> state = StateOf(name, kind);
  if (!state.ok()) return state.status();
  return std::vector<float>(state->f32().begin(), state->f32().end());
}

absl::Status StageParameters::Set(absl::string_view name, StateKind kind,
                                  absl::Span<const float> from) {
  const absl::StatusOr<Tensor> state = StateOf(name, kind);
  if (!state.ok()) return state.status();
  if (static_cast<int64_t>(from.size()) != state->size()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" has ", state->size(),
                                                   " elements, not ", from.size()));
  }
  std::copy(from.begin(), from.end(), state->f32().begin());
  return absl::OkStatus();
}

}  // namespace pipelab
