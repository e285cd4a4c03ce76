#include "pipelines/schedules/variants.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pipelines/schedules/schemes.h"

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

bool HasFullGroups(const SchemeParams& params) {
  const int group = params.group_size == 0 ? params.devices : params.group_size;
  const int rest = params.micro_batches % group;
  return params.micro_batches >= group && (rest == 0 || rest >= params.devices);
}

bool Within(const Scheme& scheme, const SchemeParams& params, const VariantLimits& limits) {
  const absl::StatusOr<int> stages = NumStages(scheme.name, params);
  if (!stages.ok() || *stages > limits.max_stages) return false;
  if (!limits.halves && params.concatenation == Concatenation::kBackwardHalving) return false;
  if (!limits.full_groups || (scheme.options & kVirtualStages) == 0 ||
      (scheme.options & kGroupSize) == 0) {
    return true;
  }
  return HasFullGroups(params);
}

// A search looks at every size of groups of so few micro-batches.
constexpr int kFewMicroBatches = 64;

// P is that of `params`. Sizes below it serve all from some one on, if any does: so a scheme that
// takes none is asked once.
std::vector<int> GroupsBelow(const Scheme& scheme, SchemeParams params) {
  std::vector<int> groups;
  for (params.group_size = params.devices - 1; params.group_size > 0; --params.group_size) {
    if (!NumStages(scheme.name, params).ok()) break;
    groups.push_back(params.group_size);
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace

std::vector<int> SomeGroupSizes(const SchemeParams& sizes) {
  if (sizes.micro_batches < 2 * sizes.devices) return {0};
  return {0, 2 * sizes.devices};
}

std::vector<int> EveryGroupSize(SchemeParams sizes, bool full_groups) {
  const int devices = sizes.devices, micro_batches = sizes.micro_batches;
  const bool every = micro_batches <= kFewMicroBatches;
  std::map<std::vector<int>, int> size_of;
  const auto add = [&](int size) {
    sizes.group_size = size;
    if (full_groups && !HasFullGroups(sizes)) return;
    const absl::StatusOr<std::vector<int>> groups = MicroBatchGroups(sizes);
    if (groups.ok()) size_of.try_emplace(*groups, size);
  };
  add(0);
  for (int size = devices; size <= micro_batches; ++size) {
    const bool whole = micro_batches % size == 0;
    if (every || whole || size == 2 * devices) add(size);
  }
  std::vector<std::pair<int, int>> by_largest;
  for (const auto& [groups, size] : size_of) {
    by_largest.emplace_back(LargestGroup(devices, micro_batches, size), size);
  }
  std::sort(by_largest.begin(), by_largest.end());
  std::vector<int> group_sizes;
  for (const auto& [largest, size] : by_largest) group_sizes.push_back(size);
  return group_sizes;
}

std::vector<SchemeParams> Variants(const Scheme& scheme, const SchemeParams& sizes,
                                   const VariantLimits& limits) {
  const int devices = sizes.devices, micro_batches = sizes.micro_batches;
  const auto has = [&](SchemeOption option) { return (scheme.options & option) != 0; };
  std::vector<SchemeParams> all = {sizes};
  // More stages per device bring nothing in a scheme with one of them.
  if (has(kVirtualStages) && sizes.virtual_stages == 0 && scheme.default_virtual_stages > 1) {
    std::vector<int> stages = {2, 3, 4, 6, 8, 12, 16};
    if (limits.least_virtual_stages > 0) {
      stages.clear();
      for (int v = limits.least_virtual_stages; v <= limits.max_stages / devices; ++v)
        stages.push_back(v);
    }
    Vary(&SchemeParams::virtual_stages, stages, &all);
  }
  if (has(kGroupSize) && !has(kStageGraph) && sizes.group_size == 0) {
    std::vector<int> groups = SomeGroupSizes(sizes);
    if (limits.least_virtual_stages > 0) {
      groups = EveryGroupSize(sizes, limits.full_groups);
      groups.resize(std::min<size_t>(groups.size(), 1));
      for (const int size : GroupsBelow(scheme, sizes)) groups.push_back(size);
    }
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
