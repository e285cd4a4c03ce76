// The fastest steps of a search so far. Private to search.
//
//   TopSteps best(/*top=*/5, /*by_layout=*/true);
//   const bool fastest = best.Keep(result, rank);
//   if (best.ToBeat() > Nanoseconds(0) && best.IsBeyond(bound, rank)) ...   // not worth a look
#ifndef PIPELAB_PIPELINES_SEARCH_TOP_STEPS_H_
#define PIPELAB_PIPELINES_SEARCH_TOP_STEPS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "pipelines/search/search.h"
#include "pipelines/search/search_space.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

// The configuration that was predicted, and its figures.
void TakeFigures(const StepPrediction& prediction, RankedStep* step);

// Before another in the search, and in its result where steps take the same time: an earlier
// method, a lower first bound (StepBounds), then the order of enumeration.
struct StepRank {
  int method = 0;
  Nanoseconds bound;
  SearchPath path;

  friend bool operator<(const StepRank& a, const StepRank& b) {
    return std::tie(a.method, a.bound, a.path) < std::tie(b.method, b.bound, b.path);
  }
};

class TopSteps {
 public:
  // `by_layout`: SearchRequest::by_layout.
  TopSteps(int top, bool by_layout) : top_(top), by_layout_(by_layout) {}

  // Where it is one of the best. Whether it is the fastest.
  bool Keep(RankedStep result, StepRank rank);
  // The step time of the last of the best; 0 while there are not as many as are asked for.
  Nanoseconds ToBeat() const;
  // Whether it would not be among as many as are asked for even if it took no longer than its
  // bound.
  bool IsBeyond(Nanoseconds bound, const StepRank& rank) const;
  // Whether its layout has a faster result already, of which it is no way. That is the layout's
  // best, since what has a lower bound was opened before.
  bool IsNoWay(const StepConfig& config, Nanoseconds bound) const;
  // Fastest first.
  std::vector<RankedStep> Take();

 private:
  struct Found {
    RankedStep result;
    StepRank rank;
    std::string layout;  // LayoutOf its configuration, with by_layout
  };
  static bool Before(const Found& a, const Found& b);
  std::vector<Found>::const_iterator SameLayout(const std::string& layout) const;

  const int top_;
  const bool by_layout_;
  std::vector<Found> best_;  // fastest first
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_TOP_STEPS_H_
