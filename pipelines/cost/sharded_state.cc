#include "pipelines/cost/sharded_state.h"

#include <algorithm>
#include <cstdint>

namespace pipelab {
namespace {

constexpr int64_t kElement = 4;  // bytes of a gradient

Bytes SummedBytes(const Shard& shard, Bytes gradients, bool scatter) {
  const int64_t own = gradients.value() / kElement;
  return Bytes(kElement * (scatter ? shard.Padded(own) : shard.PartOf(own)));
}

}  // namespace

Bytes ReductionBytes(const CostTable& costs, const Program& program, const Reduction& reduction) {
  const Bytes bytes = costs.ReductionBytes(reduction);
  if (!reduction.parameter.empty() || program.sharding == Sharding::kReplicated) return bytes;
  return SummedBytes(ShardOf(program, reduction.members[0]), bytes, reduction.scatter);
}

Bytes ExpertReductionBytes(const CostTable& costs, const Program& program,
                           const Reduction& reduction) {
  if (!reduction.parameter.empty() || reduction.members.empty()) return Bytes(0);
  const Bytes bytes = costs.stages[reduction.members[0].stage].memory.expert_gradients;
  if (program.sharding == Sharding::kReplicated) return bytes;
  return SummedBytes(ShardOf(program, reduction.members[0]).OfExperts(), bytes, reduction.scatter);
}

Bytes NormBytes(const NormSum& norm) { return Bytes(kElement * norm.values); }

Bytes GatherBytes(const CostTable& costs, const Program& program, const Gather& gather) {
  const StageCopy& copy = gather.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  return Bytes(m.weight_bytes * ShardOf(program, copy).Padded(m.gradients.value() / kElement));
}

Bytes ExpertGatherBytes(const CostTable& costs, const Program& program, const Gather& gather) {
  const StageCopy& copy = gather.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  const Shard shard = ShardOf(program, copy).OfExperts();
  return Bytes(m.weight_bytes * shard.Padded(m.expert_gradients.value() / kElement));
}

double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy) {
  if (program.sharding == Sharding::kReplicated) return 1;
  const Shard shard = ShardOf(program, copy);
  const StageMemory& m = costs.stages[copy.stage].memory;
  const int64_t all = m.weights.value() / m.weight_bytes, own = m.gradients.value() / kElement;
  const int64_t experts = m.expert_gradients.value() / kElement;
  if (all == 0) return shard.index < 0 ? 0 : 1.0 / shard.parts;
  const auto part = [](const Shard& of, int64_t values) {
    return of.index < 0 ? 0 : std::min(values, of.PartOf(values));
  };
  const int64_t steps = all - own - experts + part(shard, own) + part(shard.OfExperts(), experts);
  return static_cast<double>(steps) / static_cast<double>(all);
}

}  // namespace pipelab
