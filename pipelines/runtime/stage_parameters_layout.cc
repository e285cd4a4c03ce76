// The part of StageParameters that lays out and allocates.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "models/layers/initialize.h"
#include "pipelines/runtime/stage_parameters.h"

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

// The values of a model, numbered by first use.
std::map<std::string, int64_t> NumberValues(const ModelGraph& graph) {
  std::map<std::string, int64_t> numbers;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      numbers.emplace(ValueName(p), static_cast<int64_t>(numbers.size()));
    }
  }
  return numbers;
}

}  // namespace

StageParameters::StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                                 const OptimizerOptions& optimizer, Backend* backend, uint64_t seed,
                                 const Shard& shard, bool values_only)
    : StageParameters(graph, layers, optimizer, backend, seed, shard, values_only,
                      /*of_experts=*/false) {}

StageParameters::StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                                 const OptimizerOptions& optimizer, Backend* backend, uint64_t seed,
                                 const Shard& shard, bool values_only, bool of_experts)
    : optimizer_(optimizer),
      backend_(backend),
      shard_(shard),
      values_only_(values_only),
      of_experts_(of_experts) {
  LayOut(graph, layers);
  Allocate(seed);
  FindUses(graph, layers);
  const bool divided = std::any_of(uses_.begin(), uses_.end(), [](const auto& layer) {
    return std::any_of(layer.second.begin(), layer.second.end(),
                       [](const Use& use) { return use.region < 0; });
  });
  if (!divided) return;
  experts_.reset(new StageParameters(graph, layers, optimizer, backend, seed, shard.OfExperts(),
                                     values_only, /*of_experts=*/true));
}

bool StageParameters::Takes(const ParameterSpec& p) const {
  if (of_experts_) return p.cut.slices > 1;
  return p.cut.slices == 1 || shard_.expert_copies == 1;
}

void StageParameters::LayOut(const ModelGraph& graph, absl::Span<const int> layers) {
  const std::set<std::string> elsewhere = TiesElsewhere(graph, layers);
  const std::map<std::string, int64_t> numbers = NumberValues(graph);
  num_values_ = static_cast<int64_t>(numbers.size());
  std::vector<int> later_uses;  // regions, in layer order
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!Takes(p)) continue;
      const auto [it, first] =
          region_of_value_.emplace(ValueName(p), static_cast<int>(regions_.size()));
      if (first) {
        Region region;
        region.spec = &p;
        region.number = numbers.at(ValueName(p));
        region.shared = elsewhere.count(p.tie) > 0;
        region.size = p.size();
        region.cut = p.cut;
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
  const auto values = [&](int64_t size) {
    return backend_->arena().Zeros(backend_->activation_type(), {size}, MemoryKind::kParameter);
  };
  const int64_t whole = shard_.Padded(own_size_), part = shard_.PartOf(own_size_);
  // A stage without parameters travels, too, as one number, which nothing steps.
  const int64_t stepped = shard_.index < 0 || own_size_ == 0 ? 0 : part;
  values_.ties = values(ties_size_);
  if (sharded_values()) {
    part_of_values_ = values(part);
    if (shard_.travels && shard_.index >= 0) values_.own = part_of_values_;
  } else {
    values_.own = values(whole);
    part_of_values_ = PartOf(values_.own);
  }
  masters_ = {part_of_values_, values_.ties};
  if (has_masters()) {
    masters_ = {zeros(stepped, MemoryKind::kOptimizer), zeros(ties_size_, MemoryKind::kOptimizer)};
  }
  if (values_only_) return Start(seed);
  gradients_.ties = zeros(ties_size_, MemoryKind::kGradient);
  if (sharded_gradients()) {
    if (!shard_.travels) part_of_gradients_ = zeros(part, MemoryKind::kGradient);
  } else {
    gradients_.own = zeros(whole + later_size_, MemoryKind::kGradient);
    part_of_gradients_ = PartOf(gradients_.own);
  }
  states_.resize(StateNames(optimizer_).size());
  for (State& state : states_) {
    state.own = zeros(stepped, MemoryKind::kOptimizer);
    state.ties = zeros(ties_size_, MemoryKind::kOptimizer);
  }
  Start(seed);
}

// From the names of parameters. What is not in its own place as float32 passes through the host.
void StageParameters::Start(uint64_t seed) {
  const int64_t whole = shard_.Padded(own_size_), part = shard_.PartOf(own_size_);
  const bool in_place = !sharded_values() && !is_narrow();
  std::vector<float> own(in_place ? 0 : whole);
  for (Region& r : regions_) {
    if (r.shared || in_place) {
      const Tensor& all = r.shared ? masters_.ties : values_.own;
      InitializeTensor(*r.spec, seed, all.Rows(r.begin, r.begin + r.size));
    } else {
      InitializeParameter(*r.spec, seed, absl::MakeSpan(own).subspan(r.begin, r.size));
    }
    r.spec = nullptr;  // the graph need not outlive the constructor
  }
  if (in_place) return;
  if (!sharded_values()) SetHostValues(values_.own, own);
  if (shard_.index >= 0 && own_size_ > 0) {
    SetHostValues(masters_.own, absl::MakeConstSpan(own).subspan(shard_.index * part, part));
  }
  TakeMasters();
}

void StageParameters::FindUses(const ModelGraph& graph, absl::Span<const int> layers) {
  std::vector<int> uses(regions_.size(), 0);
  for (int i : layers) {
    std::vector<Use>& layer = uses_[i];
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!Takes(p)) {
        if (!of_experts_) layer.push_back({-1, 0, {}});
        continue;
      }
      const int region = region_of_value_.at(ValueName(p));
      layer.push_back({region, uses[region]++, Shape(p.shape.begin(), p.shape.end())});
    }
  }
}

}  // namespace pipelab
