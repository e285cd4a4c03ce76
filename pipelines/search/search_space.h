// The configurations that a search looks at, as a tree: what is chosen first says most about a
// step's time, so that a bound of a node spares its whole branch. Private to search.
//
//   SearchSpace space(model, search, method, &refusals);
//   PIPELAB_RETURN_IF_ERROR(space.ForEachDivision([&](const SearchNode& d) { return Look(d); }));
//   PIPELAB_RETURN_IF_ERROR(space.ForEachChild(d, [&](const SearchNode& grid) { ... }));
//
// A division of the devices has P, T, C, D and E, and says how the collectives of passes run. Its
// children, grids, choose the size of micro-batches; theirs the schedule and what is computed
// again; and theirs, the leaves, what is sharded: they are whole configurations.
#ifndef PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_
#define PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// The place among the children of each node on the way to a node. In this order everything is
// enumerated.
using SearchPath = absl::InlinedVector<int32_t, 8>;

struct SearchNode {
  enum class Level : uint8_t { kDivision, kGrid, kSchedule, kWhole };

  Level level = Level::kDivision;
  // Has its defaults in what is not chosen yet.
  StepConfig config;
  SearchPath path;
};

class SearchSpace {
 public:
  using Look = absl::FunctionRef<absl::Status(const SearchNode&)>;

  // All must outlive it. Counts what is left out, by the reason, among `refusals`.
  SearchSpace(const StepModel& model, const SearchRequest& search, const SearchMethod& method,
              SearchRefusals* refusals)
      : model_(model), search_(search), method_(method), refusals_(*refusals) {}

  // An error of `look` ends them.
  absl::Status ForEachDivision(Look look);
  // The micro-batches that a division may have, the smallest first.
  std::vector<int64_t> MicroBatchSizes(const StepConfig& division) const;
  // `exchanges`: of a grid, only schedules with these; none: all.
  absl::Status ForEachChild(const SearchNode& node, Look look,
                            absl::optional<Exchanges> exchanges = absl::nullopt);
  // The same schedule with one more rebuilt block, which takes no less time; none where it rebuilds
  // none or all of the `most` that a stage has. Such schedules are no children of their grid but
  // for the first.
  absl::Status WithOneMoreRebuilt(const SearchNode& schedule, int most, Look look);
  // The same schedule with the next larger groups of micro-batches, which keeps no less and hides
  // no more; none where it has the largest or none. Neither are these children of their grid.
  absl::Status WithLargerGroups(const SearchNode& schedule, Look look);

 private:
  class Children;

  absl::Status TakeMethod(StepConfig* c) const;
  absl::Status Split(StepConfig c, Children* divisions);
  absl::Status AddDivision(const StepConfig& c, Children* divisions);
  absl::Status Batches(StepConfig c, Children* grids);
  absl::Status Schedules(StepConfig c, Children* schedules);
  absl::Status Recomputes(StepConfig c, Children* schedules);
  absl::Status Shardings(StepConfig c, Children* leaves);
  absl::Status AddLeaves(StepConfig c, Children* leaves);
  // True where sharding alone decides whether the head of a split backward is split.
  bool ShardingSplitsHead(const StepConfig& c) const;
  std::vector<bool> SplitHeadsOf(const StepConfig& c) const;
  std::vector<CutRule> CutsOf(const StepConfig& c, int64_t stages) const;
  absl::StatusOr<std::vector<StepConfig>> VariantsOf(const StepConfig& c, bool first);
  std::vector<StepConfig> WithVocabularyParts(int default_virtual_stages, const StepConfig& c,
                                              bool first);
  void RefuseSizes(const StepConfig& c, const absl::StatusOr<int>& stages, bool first);
  bool Fixed(const StepConfig& c, SearchNode::Level level) const;

  const StepModel& model_;
  const SearchRequest& search_;
  const SearchMethod& method_;
  SearchRefusals& refusals_;
  // By P, M, and whether the scheme makes an order for its passes' times.
  std::map<std::tuple<int, int, bool>, std::vector<int>> group_sizes_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_
