#include "pipelines/ir/program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "glog/logging.h"

namespace pipelab {

const char* OpCodeName(OpCode op) {
  switch (op) {
    case OpCode::kCompute:
      return "compute";
    case OpCode::kSend:
      return "send";
    case OpCode::kReceive:
      return "receive";
    case OpCode::kWait:
      return "wait";
    case OpCode::kSynchronise:
      return "synchronise";
    case OpCode::kReduce:
      return "reduce";
    case OpCode::kReduceWait:
      return "reduce_wait";
    case OpCode::kGather:
      return "gather";
    case OpCode::kGatherWait:
      return "gather_wait";
    case OpCode::kNorm:
      return "norm";
    case OpCode::kNormWait:
      return "norm_wait";
    case OpCode::kRelease:
      return "release";
    case OpCode::kStep:
      return "step";
    case OpCode::kFill:
      return "fill";
    case OpCode::kOffload:
      return "offload";
    case OpCode::kReload:
      return "reload";
    case OpCode::kHostWait:
      return "host_wait";
  }
  LOG(FATAL) << "no such operation: " << static_cast<int>(op);
}

namespace {

// The copy's of the group, where parts are of members of groups.
std::vector<int> SharingSetOf(const Program& program, const StageCopy& copy) {
  std::vector<int> group = program.schedule.placement.groups[copy.replica][copy.stage];
  if (!std::is_sorted(group.begin(), group.end())) std::sort(group.begin(), group.end());
  const auto own = std::lower_bound(group.begin(), group.end(), copy.device);
  CHECK(own != group.end() && *own == copy.device)
      << "device " << copy.device << " has no copy of stage " << copy.stage;
  if (program.shards == 0) return group;
  // Sets follow one another (SharingSets).
  const auto first = group.begin() + (own - group.begin()) / program.shards * program.shards;
  return {first, first + std::min<ptrdiff_t>(program.shards, group.end() - first)};
}

}  // namespace

Shard ShardOf(const Program& program, const StageCopy& copy) {
  Shard shard;
  shard.sharding = program.sharding;
  shard.expert_copies = program.expert_copies;
  if (program.sharding == Sharding::kReplicated) return shard;
  if (program.schedule.weights_travel) {
    shard.travels = true;
    const Schedule& s = program.schedule;
    if (copy.device != OwnerOf(copy.stage, s.num_devices(), s.weight_group)) shard.index = -1;
    return shard;
  }
  const Placement& placement = program.schedule.placement;
  std::vector<int> devices;  // ascending, as communicators number a group's parts
  if (program.sharding == Sharding::kOptimizer && program.shards == 0) {
    for (int r = 0; r < placement.num_replicas(); ++r) {
      const std::vector<int>& group = placement.groups[r][copy.stage];
      const bool here = std::count(group.begin(), group.end(), copy.device) > 0;
      if (here && r < copy.replica) shard.index = -1;
      devices.insert(devices.end(), group.begin(), group.end());
    }
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  } else {
    devices = SharingSetOf(program, copy);
  }
  shard.parts = static_cast<int>(devices.size()) * program.devices_per_member;
  if (shard.index == 0) {
    const auto own = std::lower_bound(devices.begin(), devices.end(), copy.device);
    shard.index = static_cast<int>(own - devices.begin());
  }
  return shard;
}

std::vector<int> ExpertDevices(const Program& program, const std::vector<int>& devices, int device,
                               bool equal_parts) {
  if (equal_parts) return devices;
  const size_t copies = program.expert_copies;
  const auto own = std::lower_bound(devices.begin(), devices.end(), device);
  std::vector<int> same;
  for (size_t i = static_cast<size_t>(own - devices.begin()) % copies; i < devices.size();
       i += copies) {
    same.push_back(devices[i]);
  }
  return same;
}

NormShare NormShareOf(const Program& program, const StageCopy& copy) {
  const auto is_copy = [&](const StageCopy& other) {
    return other.device == copy.device && other.replica == copy.replica &&
           other.stage == copy.stage;
  };
  NormShare share;
  const std::vector<int>& first = program.schedule.placement.groups[0][copy.stage];
  if (program.sharding == Sharding::kReplicated) {
    share.own = is_copy({first[0], 0, copy.stage});
    for (int e = 0; e < program.expert_copies && e < static_cast<int>(first.size()); ++e) {
      share.experts |= is_copy({first[e], 0, copy.stage});
    }
  } else if (program.schedule.weights_travel ||
             (program.sharding == Sharding::kOptimizer && program.shards == 0)) {
    share.own = share.experts = ShardOf(program, copy).index >= 0;
  } else {  // every set has all parts
    const std::vector<int> set = SharingSetOf(program, copy);
    share.own = share.experts =
        copy.replica == 0 && set[0] == *std::min_element(first.begin(), first.end());
  }
  for (const Reduction& r : program.reductions) {
    if (!r.parameter.empty() && is_copy(r.members[0])) share.ties.push_back(r.parameter);
  }
  return share;
}

}  // namespace pipelab
