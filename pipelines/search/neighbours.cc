#include "pipelines/search/neighbours.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

auto ScheduleOf(const StepConfig& c) {
  return std::make_tuple(c.scheme, std::max(c.virtual_stages, 1), c.group_size, c.replicas,
                         c.slices, c.concatenation, c.vocabulary_barriers);
}

auto RecomputeOf(const StepConfig& c) {
  return std::make_tuple(c.recompute, c.modules, c.rebuilt_blocks, c.rebuilt_every,
                         c.rebuilt_together);
}

}  // namespace

int ChangedValues(const StepConfig& a, const StepConfig& b) {
  const bool both_pipelines = a.pipeline > 1 && b.pipeline > 1;
  const bool one_pipeline = (a.pipeline > 1) != (b.pipeline > 1);
  const bool both_shard = ShardsGradients(a.sharding) && ShardsGradients(b.sharding);
  int changes = 0;
  changes += both_pipelines && ScheduleOf(a) != ScheduleOf(b);
  changes += a.micro_batch_size != b.micro_batch_size;
  changes += a.pipeline != b.pipeline;
  changes += a.tensor != b.tensor;
  changes += a.context != b.context;
  changes += a.context > 1 && b.context > 1 && a.context_exchange != b.context_exchange;
  changes += a.experts != b.experts;
  changes += RecomputeOf(a) != RecomputeOf(b);
  changes += a.sharding != b.sharding && !(one_pipeline && both_shard);
  changes += a.tensor > 1 && b.tensor > 1 && a.sequence_parallel != b.sequence_parallel;
  return changes;
}

absl::StatusOr<std::vector<RankedStep>> NeighboursOf(StepCache* cache, const StepConfig& config,
                                                     SearchRequest space, int most_changes) {
  space.devices = config.devices();
  space.batch = config.batch();
  space.accept = [&, accept = std::move(space.accept)](const StepConfig& c) {
    return ChangedValues(config, c) <= most_changes && (!accept || accept(c));
  };
  space.together = true;
  absl::StatusOr<SearchResult> found = Search(cache, space);
  if (absl::IsNotFound(found.status())) return std::vector<RankedStep>();
  PIPELAB_RETURN_IF_ERROR(found.status());
  return std::move(found->best);
}

}  // namespace pipelab
