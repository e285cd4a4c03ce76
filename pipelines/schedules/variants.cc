#include "pipelines/schedules/variants.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace {

// Each of `all` with each of `values` of an option.
template <typename T>
void Vary(T SchemeParams::*option, const std::vector<T>& values, std::vector<SchemeParams>* all) {
  std::vector<SchemeParams> varied;
  for (const SchemeParams& params : *all) {
    for (const T& value : values) {
      varied.push_back(params);
      varied.back().*option = value;
    }
  }
  *all = std::move(varied);
}

bool Within(const Scheme& scheme, const SchemeParams& params, const VariantLimits& limits) {
  const absl::StatusOr<int> stages = NumStages(scheme.name, params);
  if (!stages.ok() || *stages > limits.max_stages) return false;
  if (!limits.halves && params.concatenation == Concatenation::kBackwardHalving) return false;
  if (!limits.whole_groups || (scheme.options & kVirtualStages) == 0 ||
      (scheme.options & kGroupSize) == 0) {
    return true;
  }
  const int group = params.group_size == 0 ? params.devices : params.group_size;
  return params.micro_batches % group == 0;
}

}  // namespace

std::vector<SchemeParams> Variants(const Scheme& scheme, const SchemeParams& sizes,
                                   const VariantLimits& limits) {
  const int devices = sizes.devices, micro_batches = sizes.micro_batches;
  const auto has = [&](SchemeOption option) { return (scheme.options & option) != 0; };
  std::vector<SchemeParams> all = {sizes};
  // Of a scheme with one stage per device more of them bring nothing.
  if (has(kVirtualStages) && sizes.virtual_stages == 0 && scheme.default_virtual_stages > 1) {
    std::vector<int> stages = {2, 3, 4, 6, 8, 12, 16};
    if (limits.every_virtual_stages) {
      stages.clear();
      for (int v = 2; v <= limits.max_stages / devices; ++v) stages.push_back(v);
    }
    Vary(&SchemeParams::virtual_stages, stages, &all);
  }
  if (has(kGroupSize) && !has(kStageGraph) && sizes.group_size == 0) {
    std::vector<int> groups = {0};
    if (micro_batches >= 2 * devices) groups.push_back(2 * devices);
    Vary(&SchemeParams::group_size, groups, &all);
  }
  if (has(kReplicas) && sizes.replicas == 0) {
    std::vector<int> replicas = {0};
    for (int r = 4; r <= devices; r += 2) {
      if (devices % r == 0) replicas.push_back(r);
    }
    Vary(&SchemeParams::replicas, replicas, &all);
  }
  if (has(kConcatenation)) {
    Vary(&SchemeParams::concatenation,
         {Concatenation::kDirect, Concatenation::kForwardDoubling, Concatenation::kBackwardHalving},
         &all);
  }
  if (has(kTokenSlices) && sizes.slices == 0) {
    Vary(&SchemeParams::slices, {0, 2, 8, 16}, &all);
  }
  if (has(kUpdateEvery) && scheme.asynchronous) {  // others learn the same
    std::vector<int> updates = {0};
    if (micro_batches > devices) updates.push_back(micro_batches);
    Vary(&SchemeParams::update_interval, updates, &all);
  }
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [&](const SchemeParams& params) { return !Within(scheme, params, limits); }),
      all.end());
  return all;
}

}  // namespace pipelab
