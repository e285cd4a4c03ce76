#include "pipelines/sim/collective_timeline.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/ir/trace.h"
#include "pipelines/sim/check_costs.h"

namespace pipelab {
namespace {

std::vector<int> DevicesOf(const std::vector<StageCopy>& members) {
  std::set<int> devices;
  for (const StageCopy& m : members) devices.insert(m.device);
  return std::vector<int>(devices.begin(), devices.end());
}

}  // namespace

ProgramRings::ProgramRings(const Program& program) {
  std::map<std::vector<int>, int> known;
  const auto add = [&](const std::vector<StageCopy>& members) {
    std::vector<int> ring = DevicesOf(members);
    const auto [it, made] = known.emplace(ring, static_cast<int>(devices.size()));
    if (made) devices.push_back(std::move(ring));
    ring_of.push_back(it->second);
  };
  for (const Reduction& r : program.reductions) add(r.members);
  for (const Gather& g : program.gathers) add(g.members);
  shareable = devices.size();
  known.clear();
  if (program.norm.has_value()) add(program.norm->members);
}

CollectiveTimeline::CollectiveTimeline(const Program& program, const CostTable& costs,
                                       const ProgramRings& rings, Transfers* transfers)
    : measured_(!costs.instruction_time.empty()),
      overlap_(costs.overlap_collectives),
      at_wait_(costs.collectives_at_wait),
      num_reductions_(program.reductions.size()),
      rings_(rings),
      transfers_(transfers),
      running_(rings.devices.size()),
      queues_(program.schedule.num_devices()),
      free_at_(program.schedule.num_devices(), 0) {
  all_.reserve(rings.ring_of.size());
  const auto add = [&](pipelab::Collective kind, Bytes bytes, Nanoseconds more, int rounds = 1,
                       Bytes of_experts = Bytes(0), bool equal_parts = false) {
    Collective c;
    c.ring = rings.ring_of[all_.size()];
    const std::vector<int>& devices = rings.devices[c.ring];
    const CollectiveCost cost = CostOfCollective(costs, kind, devices, bytes);
    c.missing = static_cast<int>(devices.size());
    c.latency = (more + cost.latency).value() * rounds;
    c.time = (more + cost.Time()).value() * rounds;
    c.sent = cost.sent * rounds;
    c.traffic =
        RingTraffic(bytes, cost.ring.ranks, kind == pipelab::Collective::kAllReduce).value() *
        rounds;
    if (of_experts > Bytes(0)) {
      const CollectiveCost then =
          equal_parts
              ? CostOfCollective(costs, kind, devices, of_experts)
              : CostOfExpertCollective(costs, kind, devices, program.expert_copies, of_experts);
      c.then = then.Time().value();
      c.time += c.then;
      c.traffic +=
          RingTraffic(of_experts, then.ring.ranks, kind == pipelab::Collective::kAllReduce).value();
    }
    all_.push_back(std::move(c));
  };
  for (const Reduction& r : program.reductions) {
    add(r.scatter ? pipelab::Collective::kReduceScatter : pipelab::Collective::kAllReduce,
        ReductionBytes(costs, program, r), costs.reduce, /*rounds=*/1,
        ExpertReductionBytes(costs, program, r), SumsEqualParts(program, r.scatter));
  }
  for (const Gather& g : program.gathers) {
    add(pipelab::Collective::kAllGather, GatherBytes(costs, program, g), Nanoseconds(0),
        /*rounds=*/1, ExpertGatherBytes(costs, program, g));
  }
  if (program.norm.has_value()) {
    add(pipelab::Collective::kAllReduce, NormBytes(*program.norm), costs.reduce + costs.launch_gap,
        program.norm->rounds);
  }
}

absl::Status CollectiveTimeline::CheckTimes(Nanoseconds most) const {
  for (const Collective& c : all_) {
    if (c.time <= most.value()) continue;
    return LongerThan(
        most, absl::StrCat("a collective of devices ", absl::StrJoin(rings_.devices[c.ring], ","),
                           ", each of which sends ", ToString(Bytes(c.traffic)), ", takes"));
  }
  return absl::OkStatus();
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
  if (begins && at_wait_) return now;
  if (!begins && !at_wait_) return c.end == kBlocked ? EndFor(device, &c) : std::max(now, c.end);
  const bool stays = at_wait_ || !overlap_;
  if (stays && c.end != kBlocked) return c.end;  // woken
  Arrive(&c, now, own);
  queues_[device].push_back(index);
  Resolve({index});
  return stays ? EndFor(device, &c) : now;
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

void CollectiveTimeline::Resolve(std::vector<size_t> next) {
  while (!next.empty()) {
    const size_t at = next.back();
    next.pop_back();
    Collective& c = all_[at];
    bool ready = c.missing == 0 && c.begin == kBlocked;
    int64_t begin = c.last_arrival;
    for (int d : rings_.devices[c.ring]) {
      ready = ready && !queues_[d].empty() && queues_[d].front() == at;
      begin = std::max(begin, free_at_[d]);
    }
    if (!ready) continue;
    c.begin = begin;
    if (Run(at)) Leave(c, &next);
  }
}

bool CollectiveTimeline::Run(size_t index) {
  Collective& c = all_[index];
  const bool shareable = static_cast<size_t>(c.ring) < rings_.shareable;
  if (c.sent == 0 || !shareable || !transfers_->IsShared(c.ring)) {
    End(&c, c.begin + c.time);
    return true;
  }
  running_[c.ring] = index;
  transfers_->Begin(c.ring, c.sent, c.begin + c.latency);
  return false;
}

void CollectiveTimeline::Complete(int ring, int64_t end) {
  Collective& c = all_[running_[ring]];
  end += c.then;
  c.time = end - c.begin;
  End(&c, end);
  std::vector<size_t> next;
  Leave(c, &next);
  Resolve(std::move(next));
}

void CollectiveTimeline::Leave(const Collective& c, std::vector<size_t>* next) {
  for (int d : rings_.devices[c.ring]) {
    free_at_[d] = c.end;
    queues_[d].pop_front();
    if (!queues_[d].empty()) next->push_back(queues_[d].front());
  }
}

}  // namespace pipelab
