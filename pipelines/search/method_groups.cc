#include "pipelines/search/method_groups.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/algorithm/container.h"
#include "pipelines/search/search_request.h"

namespace pipelab {
namespace {

bool HasBounds(const SearchMethod& method) {
  return absl::c_all_of(method.schemes,
                        [](const std::string& scheme) { return IsBounded(scheme); });
}

bool SameGrids(const SearchMethod& a, const SearchMethod& b) {
  const auto of_grid = [](const SearchMethod& m) {
    const StateNumbers& n = m.state;
    return std::make_tuple(m.overlap_tensor, n.weights, n.gradients, n.cast, m.execution,
                           m.pipeline, HasBounds(m));
  };
  return of_grid(a) == of_grid(b);
}

}  // namespace

ShardedState LeastSharded(const std::vector<Sharding>& shardings, StepConfig config,
                          const StepBounds& bounds) {
  ShardedState least{config, bounds.LeastState(config)};
  bool first = true;
  for (const Sharding sharding : shardings) {
    config.sharding = sharding;
    const Bytes state = bounds.LeastState(config);
    if (first || state < least.state) least = {config, state};
    first = false;
  }
  return least;
}

void MethodGroups::Add(int method) {
  const SearchMethod& m = search_.methods[method];
  const auto known =
      absl::c_find_if(firsts_, [&](int first) { return SameGrids(search_.methods[first], m); });
  const int first = known == firsts_.end() ? method : *known;
  if (first == method) firsts_.push_back(method);
  groups_.resize(std::max(groups_.size(), static_cast<size_t>(first) + 1));
  Group& group = groups_[first];
  group.methods.push_back(method);
  for (const Sharding sharding : m.shardings) {
    if (!absl::c_linear_search(group.shardings, sharding)) group.shardings.push_back(sharding);
  }
  group.bounded = group.bounded && HasBounds(m) && HasWholeUnits(m);
}

bool MethodGroups::HasWholeUnits(const SearchMethod& method) const {
  if (search_.fixed.has("layout")) return false;
  if (method.layout.empty()) return true;
  StepConfig c;
  c.layout = method.layout;
  return cache_.LayoutHasWholeUnits(c).value_or(false);
}

}  // namespace pipelab
