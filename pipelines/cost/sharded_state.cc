#include "pipelines/cost/sharded_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace pipelab {
namespace {

constexpr int64_t kElement = 4;  // bytes

// One copy's bytes.
struct CopyBytes {
  int64_t always = 0;
  int64_t gathered = 0;   // more while its values are put together
  int64_t gradients = 0;  // more while a run's gradients are
};

bool ShardsGradients(const Shard& shard) {
  return shard.parts > 1 &&
         (shard.sharding == Sharding::kGradients || shard.sharding == Sharding::kFully);
}

CopyBytes BytesOf(const StageMemory& m, const Shard& shard) {
  CopyBytes bytes;
  if (shard.parts == 1) {
    bytes.always = m.state.value();
    return bytes;
  }
  const int64_t own = m.gradients.value() / kElement;
  const int64_t whole = shard.Padded(own) * kElement, part = shard.PartOf(own) * kElement;
  const int64_t ties = m.weights.value() - m.gradients.value();
  // Gradients of a value's second and later uses in the stage.
  const int64_t statistics = m.statistics.value(), weights = m.weights.value();
  const int64_t later_uses = m.state.value() - statistics - 2 * weights - m.optimizer.value();
  const int64_t tensors = weights == 0 ? 0 : m.optimizer.value() / weights;  // the optimizer's
  bytes.always = statistics + (2 + tensors) * ties + (shard.index < 0 ? 0 : tensors * part);
  if (shard.sharding == Sharding::kFully) {
    bytes.always += part;
    bytes.gathered = whole;
  } else {
    bytes.always += whole;
  }
  if (ShardsGradients(shard)) {
    bytes.always += part;
    bytes.gradients = whole + later_uses;
  } else {
    bytes.always += whole + later_uses;
  }
  return bytes;
}

// The most above what the device always has.
int64_t PeakOfRuns(const CostTable& costs, const Program& program, int device) {
  struct Copy {
    Shard shard;
    CopyBytes bytes;
    bool in_run = false;  // its gradients are
  };
  std::map<std::pair<int, int>, Copy> copies;  // by replica and stage
  const auto copy_of = [&](const Instruction& i) -> Copy& {
    const auto [at, first] = copies.try_emplace({i.replica, i.action.stage});
    if (first) {
      at->second.shard = ShardOf(program, {device, i.replica, i.action.stage});
      at->second.bytes = BytesOf(costs.stages[i.action.stage].memory, at->second.shard);
    }
    return at->second;
  };
  int64_t level = 0, peak = 0;
  for (const Instruction& i : program.instructions[device]) {
    switch (i.op) {
      case OpCode::kGather:
        level += copy_of(i).bytes.gathered;
        break;
      case OpCode::kRelease:
        level -= copy_of(i).bytes.gathered;
        break;
      case OpCode::kCompute:
        if (i.action.kind == ActionKind::kBackward ||
            i.action.kind == ActionKind::kBackwardWeight) {
          Copy& copy = copy_of(i);
          if (!copy.in_run) level += copy.bytes.gradients;
          copy.in_run = true;
        }
        break;
      case OpCode::kReduce:
        if (program.reductions[i.arg].scatter) copy_of(i).in_run = false;
        break;
      case OpCode::kReduceWait:
        if (program.reductions[i.arg].scatter) level -= copy_of(i).bytes.gradients;
        break;
      default:
        break;
    }
    peak = std::max(peak, level);
  }
  return peak;
}

}  // namespace

std::vector<Bytes> PeakState(const CostTable& costs, const Program& program) {
  if (program.sharding == Sharding::kReplicated) return costs.PeakState(program.schedule);
  const Schedule& s = program.schedule;
  std::vector<Bytes> peak(s.num_devices());
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int d : s.placement.groups[r][stage]) {
        const Shard shard = ShardOf(program, {d, r, stage});
        peak[d] += Bytes(BytesOf(costs.stages[stage].memory, shard).always);
      }
    }
  }
  if (program.sharding == Sharding::kOptimizer) return peak;
  for (int d = 0; d < s.num_devices(); ++d) peak[d] += Bytes(PeakOfRuns(costs, program, d));
  return peak;
}

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
  const int64_t own = costs.stages[copy.stage].memory.gradients.value() / kElement;
  return Bytes(kElement * ShardOf(program, copy).Padded(own));
}

double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy) {
  if (program.sharding == Sharding::kReplicated) return 1;
  const Shard shard = ShardOf(program, copy);
  const StageMemory& m = costs.stages[copy.stage].memory;
  const int64_t all = m.weights.value() / kElement, own = m.gradients.value() / kElement;
  if (all == 0) return shard.index < 0 ? 0 : 1.0 / shard.parts;
  const int64_t part = shard.index < 0 ? 0 : std::min(own, shard.PartOf(own));
  return static_cast<double>(all - own + part) / static_cast<double>(all);
}

}  // namespace pipelab
