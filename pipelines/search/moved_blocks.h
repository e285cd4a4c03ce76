// Moves blocks between the stages of a configuration for as long as its step gets shorter. The
// rules that a search cuts by (StepConfig::cut) balance stages or devices, and know nothing of an
// order: where first and last devices wait anyway, others may have more.
//
//   PIPELAB_ASSIGN_OR_RETURN(const absl::optional<RankedStep> faster,
//                            WithMovedBlocks(&cache, request, best));
//   faster->config.layout;   // "17+16+16+14": layers of each stage
#ifndef PIPELAB_PIPELINES_SEARCH_MOVED_BLOCKS_H_
#define PIPELAB_PIPELINES_SEARCH_MOVED_BLOCKS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_cache.h"

namespace pipelab {

// None where no move helps, and where there is nothing to move: one stage, stages that are not
// whole groups of the model, several replicas, or a `layout` or `cut` that the request fixes. A
// move takes one group from one stage to another, the stages in between moving along. It looks at
// kMostMoves steps at most, so the result is better than the rule's, and need not be the best.
constexpr int kMostMoves = 40;
absl::StatusOr<absl::optional<RankedStep>> WithMovedBlocks(StepCache* cache,
                                                           const SearchRequest& search,
                                                           const RankedStep& step);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_MOVED_BLOCKS_H_
