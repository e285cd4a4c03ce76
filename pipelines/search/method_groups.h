// Methods of a search that share their grids: they have the same ones, and in each the work and the
// state of a device are the same. Private to search.
//
//   MethodGroups groups(search, &cache);
//   for (int method = 0; method < num_methods; ++method) groups.Add(method);
//   for (const int method : groups.firsts()) LookAtGrids(method, groups.With(method));
#ifndef PIPELAB_PIPELINES_SEARCH_METHOD_GROUPS_H_
#define PIPELAB_PIPELINES_SEARCH_METHOD_GROUPS_H_

#include <vector>

#include "pipelines/ir/sharding.h"
#include "pipelines/search/search.h"
#include "pipelines/search/step_bounds.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

// A configuration with the one of some shardings that leaves the least state on a device.
struct ShardedState {
  StepConfig config;
  Bytes state;  // StepBounds::LeastState
};
ShardedState LeastSharded(const std::vector<Sharding>& shardings, StepConfig config,
                          const StepBounds& bounds);

class MethodGroups {
 public:
  // Both must outlive it.
  MethodGroups(const SearchRequest& search, StepCache* cache) : search_(search), cache_(*cache) {}

  void Add(int method);                                       // search.methods[method]
  const std::vector<int>& firsts() const { return firsts_; }  // of each group
  // All with the grids of this first one, itself among them.
  const std::vector<int>& With(int first) const { return groups_[first].methods; }
  // These grids have schedules of schemes with bounds alone, whose stages are whole units.
  bool AreBounded(int first) const { return groups_[first].bounded; }
  // The grid has the best sharding of all the methods.
  ShardedState LeastSharded(int first, const StepConfig& grid, const StepBounds& bounds) const {
    return pipelab::LeastSharded(groups_[first].shardings, grid, bounds);
  }

 private:
  struct Group {
    std::vector<int> methods;
    std::vector<Sharding> shardings;
    bool bounded = true;
  };

  bool HasWholeUnits(const SearchMethod& method) const;

  const SearchRequest& search_;
  StepCache& cache_;
  std::vector<int> firsts_;
  std::vector<Group> groups_;  // by their first method
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_METHOD_GROUPS_H_
