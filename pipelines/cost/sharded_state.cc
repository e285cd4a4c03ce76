#include "pipelines/cost/sharded_state.h"

#include <algorithm>
#include <cstdint>

namespace pipelab {
namespace {

Bytes SummedBytes(const Shard& shard, const StageMemory& m, Bytes gradients, bool scatter) {
  const int64_t element = m.numbers.gradients, own = gradients.value() / element;
  return Bytes(element * (scatter ? shard.Padded(own) : shard.PartOf(own)));
}

}  // namespace

Bytes ReductionBytes(const CostTable& costs, const Program& program, const Reduction& reduction) {
  const Bytes bytes = costs.ReductionBytes(reduction);
  if (!reduction.parameter.empty() || program.sharding == Sharding::kReplicated) return bytes;
  const StageCopy& copy = reduction.members[0];
  return SummedBytes(ShardOf(program, copy), costs.stages[copy.stage].memory, bytes,
                     reduction.scatter);
}

Bytes ExpertReductionBytes(const CostTable& costs, const Program& program,
                           const Reduction& reduction) {
  if (!reduction.parameter.empty() || reduction.members.empty()) return Bytes(0);
  const StageCopy& copy = reduction.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  if (program.sharding == Sharding::kReplicated) return m.expert_gradients;
  return SummedBytes(ShardOf(program, copy).OfExperts(), m, m.expert_gradients, reduction.scatter);
}

Bytes HopBytes(const StageMemory& m, bool gradient) {
  Shard shard;
  shard.travels = true;
  const int element = gradient ? m.numbers.gradients : m.numbers.weights;
  return Bytes(element * shard.Padded(m.num_gradients()));
}

Bytes NormBytes(const NormSum& norm) { return Bytes(4 * norm.values); }

Bytes GatherBytes(const CostTable& costs, const Program& program, const Gather& gather) {
  const StageCopy& copy = gather.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  return Bytes(m.numbers.weights * ShardOf(program, copy).Padded(m.num_gradients()));
}

Bytes ExpertGatherBytes(const CostTable& costs, const Program& program, const Gather& gather) {
  const StageCopy& copy = gather.members[0];
  const StageMemory& m = costs.stages[copy.stage].memory;
  const Shard shard = ShardOf(program, copy).OfExperts();
  return Bytes(m.numbers.weights * shard.Padded(m.num_expert_gradients()));
}

double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy) {
  if (program.sharding == Sharding::kReplicated) return 1;
  const Shard shard = ShardOf(program, copy);
  const StageMemory& m = costs.stages[copy.stage].memory;
  const int64_t all = m.num_weights(), own = m.num_gradients();
  const int64_t experts = m.num_expert_gradients();
  if (all == 0) return shard.index < 0 ? 0 : 1.0 / shard.parts;
  const auto part = [](const Shard& of, int64_t values) {
    return of.index < 0 ? 0 : std::min(values, of.PartOf(values));
  };
  const int64_t steps = all - own - experts + part(shard, own) + part(shard.OfExperts(), experts);
  return static_cast<double>(steps) / static_cast<double>(all);
}

}  // namespace pipelab
