#include "pipelines/cost/sharded_state.h"

#include <algorithm>
#include <cstdint>

namespace pipelab {
namespace {

constexpr int64_t kElement = 4;  // bytes of a gradient

}  // namespace

Bytes ReductionBytes(const CostTable& costs, const Program& program, const Reduction& reduction) {
  const Bytes bytes = costs.ReductionBytes(reduction);
  if (!reduction.parameter.empty() || program.sharding == Sharding::kReplicated) return bytes;
  const Shard shard = ShardOf(program, reduction.members[0]);
  const int64_t own = bytes.value() / kElement;
  return Bytes(kElement * (reduction.scatter ? shard.Padded(own) : shard.PartOf(own)));
}

Bytes NormBytes(const NormSum& norm) { return Bytes(kElement * norm.values); }

Bytes GatherBytes(const CostTable& costs, const Program& program, const Gather& gather) {
  const StageCopy& copy = gather.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  return Bytes(m.weight_bytes * ShardOf(program, copy).Padded(m.gradients.value() / kElement));
}

double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy) {
  if (program.sharding == Sharding::kReplicated) return 1;
  const Shard shard = ShardOf(program, copy);
  const StageMemory& m = costs.stages[copy.stage].memory;
  const int64_t all = m.weights.value() / m.weight_bytes, own = m.gradients.value() / kElement;
  if (all == 0) return shard.index < 0 ? 0 : 1.0 / shard.parts;
  const int64_t part = shard.index < 0 ? 0 : std::min(own, shard.PartOf(own));
  return static_cast<double>(all - own + part) / static_cast<double>(all);
}

}  // namespace pipelab
