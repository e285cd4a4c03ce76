#include "pipelines/sim/collective_timeline.h"

#include <algorithm>
#include <set>

#include "pipelines/cost/collectives.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/ir/trace.h"

namespace pipelab {
namespace {

std::vector<int> DevicesOf(const std::vector<StageCopy>& members) {
  std::set<int> devices;
  for (const StageCopy& m : members) devices.insert(m.device);
  return std::vector<int>(devices.begin(), devices.end());
}

}  // namespace

CollectiveTimeline::CollectiveTimeline(const Program& program, const CostTable& costs)
    : measured_(!costs.instruction_time.empty()),
      overlap_(costs.overlap),
      num_reductions_(program.reductions.size()),
      queues_(program.schedule.num_devices()),
      free_at_(program.schedule.num_devices(), 0) {
  all_.reserve(program.reductions.size() + program.gathers.size() + 1);
  const auto add = [&](const std::vector<StageCopy>& members, pipelab::Collective kind, Bytes bytes,
                       Nanoseconds more) {
    Collective& c = all_.emplace_back();
    c.devices = DevicesOf(members);
    c.missing = static_cast<int>(c.devices.size());
    c.time = (more + CollectiveTime(costs, kind, c.devices, bytes)).value();
    c.traffic = RingTraffic(bytes, c.missing, kind == pipelab::Collective::kAllReduce).value();
  };
  for (const Reduction& r : program.reductions) {
    add(r.members,
        r.scatter ? pipelab::Collective::kReduceScatter : pipelab::Collective::kAllReduce,
        ReductionBytes(costs, program, r), costs.reduce);
  }
  for (const Gather& g : program.gathers) {
    add(g.members, pipelab::Collective::kAllGather, GatherBytes(costs, program, g), Nanoseconds(0));
  }
  if (program.norm.has_value()) {
    add(program.norm->members, pipelab::Collective::kAllReduce, NormBytes(*program.norm),
        costs.reduce);
  }
}

size_t CollectiveTimeline::IndexOf(const Instruction& i) const {
  if (i.op == OpCode::kNorm || i.op == OpCode::kNormWait) return all_.size() - 1;
  const bool gather = i.op == OpCode::kGather || i.op == OpCode::kGatherWait;
  return (gather ? num_reductions_ : 0) + static_cast<size_t>(i.arg);
}

int64_t CollectiveTimeline::Visit(int device, const Instruction& i, int64_t now, int64_t own) {
  const size_t index = IndexOf(i);
  Collective& c = all_[index];
  const bool begins = BeginsCollective(i.op);
  if (measured_) {
    if (begins) return now + own;
    if (c.end != kBlocked) return c.end;  // woken by the last one
    Arrive(&c, now, own);
    if (c.missing == 0) End(&c, c.last_arrival + c.longest);
    return EndFor(device, &c);
  }
  if (!begins) return c.end == kBlocked ? EndFor(device, &c) : std::max(now, c.end);
  if (!overlap_ && c.end != kBlocked) return c.end;
  Arrive(&c, now, own);
  queues_[device].push_back(index);
  Resolve(index);
  return overlap_ ? now : EndFor(device, &c);
}

void CollectiveTimeline::Arrive(Collective* c, int64_t now, int64_t own) {
  --c->missing;
  c->last_arrival = std::max(c->last_arrival, now);
  c->longest = std::max(c->longest, own);
}

int64_t CollectiveTimeline::EndFor(int device, Collective* c) {
  if (c->end == kBlocked) c->waiting.push_back(device);
  return c->end;
}

void CollectiveTimeline::End(Collective* c, int64_t end) {
  c->end = end;
  woken_.insert(woken_.end(), c->waiting.begin(), c->waiting.end());
  c->waiting.clear();
}

void CollectiveTimeline::Resolve(size_t index) {
  std::vector<size_t> next = {index};
  while (!next.empty()) {
    const size_t at = next.back();
    next.pop_back();
    Collective& c = all_[at];
    bool ready = c.missing == 0;
    int64_t begin = c.last_arrival;
    for (int d : c.devices) {
      ready = ready && !queues_[d].empty() && queues_[d].front() == at;
      begin = std::max(begin, free_at_[d]);
    }
    if (!ready) continue;
    End(&c, begin + c.time);
    for (int d : c.devices) {
      free_at_[d] = c.end;
      queues_[d].pop_front();
      if (!queues_[d].empty()) next.push_back(queues_[d].front());
    }
  }
}

}  // namespace pipelab
