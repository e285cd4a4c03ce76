#include "tests/support/collective_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/versions.h"

namespace pipelab {
namespace {

using CopyKey = std::pair<int, int>;  // replica, stage

// A stage's copies: one of each replica that has its own, and none where it has no parameters.
std::vector<StageCopy> CopiesOf(const Schedule& s, int stage) {
  std::vector<StageCopy> copies;
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    if (s.Prepares(stage) || (r > 0 && s.IsOneCopy(stage))) break;
    for (int d : s.placement.groups[r][stage]) copies.push_back({d, r, stage});
  }
  return copies;
}

bool HasSteps(const Program& p) {
  return std::any_of(p.instructions.begin(), p.instructions.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Instruction& i) { return i.op == OpCode::kStep; });
  });
}

// What one device's list has done to one copy so far.
struct CopyState {
  bool unsummed = false;     // gradients that no reduction has taken
  bool summed = false;       // gradients that are summed, all of them, and not stepped
  int in_flight = 0;         // reductions begun and not awaited
  bool resident = false;     // values put together
  bool stale_parts = false;  // stepped on a part, not put together since
  int32_t gather = -1;       // that made it resident
  int steps = 0;
};

class DeviceChecker {
 public:
  DeviceChecker(const Program& p, int device) : p_(p), d_(device) {}

  std::string Check() {
    const auto& list = p_.instructions[d_];
    for (at_ = 0; at_ < list.size() && error_.empty(); ++at_) Visit(list[at_]);
    for (size_t id = 0; id < p_.reductions.size(); ++id) {
      CheckOnce("reduction", id, p_.reductions[id].members, reduced_[id], reduce_awaited_[id]);
    }
    for (size_t id = 0; id < p_.gathers.size(); ++id) {
      CheckOnce("gather", id, p_.gathers[id].members, gathered_[id], gather_awaited_[id]);
    }
    if (p_.norm.has_value()) CheckOnce("norm", 0, p_.norm->members, normed_, norm_awaited_);
    CheckSteps();
    for (const auto& [key, state] : copies_) {
      if (state.stale_parts) Fail("stage ", key.second, " is left in parts after its step");
      if (state.in_flight > 0) Fail("stage ", key.second, " is left with a sum under way");
      if (state.resident && ByUse()) Fail("stage ", key.second, "'s weights are never released");
    }
    return error_;
  }

 private:
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (error_.empty()) error_ = absl::StrCat("device ", d_, ": ", parts...);
  }
  // What travels is HopChecker's.
  bool travels() const { return p_.schedule.weights_travel; }
  bool ByUse() const { return p_.sharding == Sharding::kFully && !travels(); }
  bool Sharded(int replica, int stage) const {
    return !p_.schedule.Prepares(stage) && ShardOf(p_, {d_, replica, stage}).parts > 1;
  }
  int Copies(int stage) const {
    return travels() ? 1 : static_cast<int>(CopiesOf(p_.schedule, stage).size());
  }
  CopyState& StateOf(int replica, int stage) {
    return copies_[{p_.schedule.IsOneCopy(stage) ? 0 : replica, stage}];
  }

  void CheckOnce(const char* what, size_t id, const std::vector<StageCopy>& members, int begun,
                 int awaited) {
    const bool member = std::any_of(members.begin(), members.end(),
                                    [&](const StageCopy& m) { return m.device == d_; });
    if (begun != member || awaited != member) {
      Fail(what, " ", id, " begins ", begun, " times and is awaited ", awaited, " times");
    }
  }

  // Each copy steps where the schedule says so; else, if any does, once.
  void CheckSteps() {
    const bool own = HasOwnSteps(p_.schedule), steps = HasSteps(p_);
    for (int stage = 0; stage < p_.schedule.num_stages(); ++stage) {
      int expected = steps ? 1 : 0;
      if (own) {
        expected = 0;
        for (const Action& a : p_.schedule.order[d_]) {
          expected += a.kind == ActionKind::kStep && a.stage == stage;
        }
      }
      for (const StageCopy& c : CopiesOf(p_.schedule, stage)) {
        const int found = c.device == d_ ? copies_[{c.replica, stage}].steps : expected;
        if (found != expected) Fail("stage ", stage, " steps ", found, " times");
      }
    }
  }

  // Calls fn for each copy of the members that is here.
  template <typename Fn>
  void ForMine(const std::vector<StageCopy>& members, Fn fn) {
    for (const StageCopy& m : members) {
      if (m.device == d_) fn(copies_[{m.replica, m.stage}], m);
    }
  }

  // A step or release names a copy that is here, and a collective the first of its copies here.
  bool NamesCopy(const Instruction& i) const {
    const auto named = [&](const StageCopy& m) {
      return m.device == d_ && m.replica == i.replica && m.stage == i.action.stage;
    };
    const std::vector<StageCopy>* members = MembersOf(p_, i);
    if (members != nullptr) {
      const auto first = std::find_if(members->begin(), members->end(),
                                      [&](const StageCopy& m) { return m.device == d_; });
      return first != members->end() && named(*first);
    }
    if (i.op != OpCode::kStep && i.op != OpCode::kRelease) return true;
    const std::vector<StageCopy> copies = CopiesOf(p_.schedule, i.action.stage);
    return std::any_of(copies.begin(), copies.end(), named);
  }

  void Visit(const Instruction& i) {
    if (!NamesCopy(i)) {
      return Fail(OpCodeName(i.op), " ", i.arg, " is not of stage ", i.action.stage, " here");
    }
    switch (i.op) {
      case OpCode::kCompute:
        return Compute(i.action, StateOf(i.replica, i.action.stage), i.replica);
      case OpCode::kReduce:
        return Reduce(i);
      case OpCode::kReduceWait: {
        const Reduction& r = p_.reductions[i.arg];
        if (reduced_[i.arg] == 0) Fail("awaits reduction ", i.arg, " before it begins");
        ++reduce_awaited_[i.arg];
        if (!r.parameter.empty()) return;
        ForMine(r.members, [&](CopyState& c, const StageCopy&) { --c.in_flight; });
        return;
      }
      case OpCode::kGather:
        return Gather(i);
      case OpCode::kGatherWait:
        return AwaitGather(i);
      case OpCode::kNorm:
        return Norm();
      case OpCode::kNormWait:
        if (normed_ == 0) Fail("awaits the norm before it begins");
        ++norm_awaited_;
        return;
      case OpCode::kRelease: {
        if (travels()) return;
        CopyState& c = copies_[{i.replica, i.action.stage}];
        if (!ByUse() || !c.resident || c.gather != i.arg) {
          Fail("releases stage ", i.action.stage, ", which is not there");
        }
        c.resident = false;
        return;
      }
      case OpCode::kStep:
        return Step(i);
      case OpCode::kFill:
      case OpCode::kSynchronise:
      case OpCode::kSend:
      case OpCode::kReceive:
      case OpCode::kWait:
      case OpCode::kOffload:
      case OpCode::kReload:
      case OpCode::kHostWait:
        return;
    }
  }

  void Reduce(const Instruction& i) {
    const Reduction& r = p_.reductions[i.arg];
    ++reduced_[i.arg];
    if (normed_ > 0) Fail("sums gradients whose norm is taken already");
    if (!r.parameter.empty()) return;
    if (r.scatter && p_.sharding == Sharding::kReplicated) Fail("scatters whole gradients");
    ForMine(r.members, [&](CopyState& c, const StageCopy& m) {
      if (c.steps > 0 && !HasOwnSteps(p_.schedule))
        Fail("sums stage ", m.stage, " behind its step");
      if (Sharded(m.replica, m.stage) && !r.scatter && (c.unsummed || c.in_flight > 0)) {
        Fail("sums parts of stage ", m.stage, " before its last run is in them");
      }
      c.unsummed = false;
      c.summed |= !r.scatter || !ShardsGradients(p_.sharding);
      ++c.in_flight;
    });
  }

  void Gather(const Instruction& i) {
    ++gathered_[i.arg];
    ForMine(p_.gathers[i.arg].members, [&](CopyState& c, const StageCopy& m) {
      if (ByUse() && c.resident) Fail("gathers stage ", m.stage, ", which is there");
      if (!ByUse() && c.steps == 0) Fail("gathers stage ", m.stage, " before its step");
    });
  }

  void AwaitGather(const Instruction& i) {
    if (gathered_[i.arg] == 0) Fail("awaits gather ", i.arg, " before it begins");
    ++gather_awaited_[i.arg];
    ForMine(p_.gathers[i.arg].members, [&](CopyState& c, const StageCopy&) {
      c.resident = true;
      c.stale_parts = false;
      c.gather = i.arg;
    });
  }

  void Compute(const Action& a, CopyState& c, int replica) {
    if (ByUse() && Sharded(replica, a.stage) && !c.resident) {
      Fail(ToString(a), " without its stage's weights");
    }
    if (c.steps > 0 && !HasOwnSteps(p_.schedule)) Fail(ToString(a), " behind its stage's step");
    if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardWeight) return;
    c.unsummed = true;
    if (normed_ > 0) Fail(ToString(a), " adds to gradients whose norm is taken already");
    if (Copies(a.stage) > 1 && c.summed) {
      Fail(ToString(a), " adds to gradients that are summed already");
    }
    for (size_t id = 0; id < p_.reductions.size(); ++id) {
      const Reduction& r = p_.reductions[id];
      if (r.parameter.empty() || reduced_[id] == 0) continue;
      ForMine(r.members, [&](CopyState&, const StageCopy& m) {
        if (m.replica == replica && m.stage == a.stage) {
          Fail(ToString(a), " adds to ", r.parameter, ", which is summed already");
        }
      });
    }
  }

  // Gradients that have several copies are summed: those of stages, and of ties.
  void Norm() {
    ++normed_;
    for (const auto& [key, state] : copies_) {
      if (Copies(key.second) > 1 && (state.unsummed || state.in_flight > 0)) {
        Fail("takes the norm before the sum of stage ", key.second);
      }
    }
    for (size_t id = 0; id < p_.reductions.size(); ++id) {
      const Reduction& r = p_.reductions[id];
      ForMine(r.members, [&](CopyState&, const StageCopy&) {
        if (reduce_awaited_[id] == 0) Fail("takes the norm before the sum of ", r.parameter);
      });
    }
  }

  void Step(const Instruction& i) {
    if (p_.norm.has_value() && norm_awaited_ == 0) Fail("steps before the norm is there");
    CopyState& c = copies_[{i.replica, i.action.stage}];
    ++c.steps;
    const int stage = i.action.stage;
    if (Copies(stage) > 1) {
      if (c.unsummed || c.in_flight > 0) Fail("steps stage ", stage, " before its sum is there");
      c.summed = false;
    }
    for (size_t id = 0; id < p_.reductions.size(); ++id) {
      const Reduction& r = p_.reductions[id];
      if (r.parameter.empty()) continue;
      ForMine(r.members, [&](CopyState&, const StageCopy& m) {
        if (m.replica == i.replica && m.stage == stage && reduce_awaited_[id] == 0) {
          Fail("steps stage ", stage, " before the sum of ", r.parameter);
        }
      });
    }
    if (!Sharded(i.replica, stage)) return;
    if (ByUse() && c.resident) Fail("steps stage ", stage, " while its weights are put together");
    c.stale_parts = !ByUse() && !travels();
  }

  const Program& p_;
  const int d_;
  size_t at_ = 0;
  std::map<CopyKey, CopyState> copies_;
  std::map<size_t, int> reduced_, reduce_awaited_, gathered_, gather_awaited_;
  int normed_ = 0, norm_awaited_ = 0;
  std::string error_;
};

// Whether a stage's gradients are summed over all its copies: in one reduction, or (sharded) within
// the sets that share them, and then between these part by part.
std::string CheckMembers(const Program& p) {
  using Copies = std::set<std::pair<int, int>>;  // (device, replica)
  if (!HasSteps(p) || p.schedule.weights_travel) return "";
  for (int stage = 0; stage < p.schedule.num_stages(); ++stage) {
    Copies all;
    for (const StageCopy& c : CopiesOf(p.schedule, stage)) all.insert({c.device, c.replica});
    // What is summed in the part that each copy steps.
    std::map<std::pair<int, int>, Copies> in_part;
    for (const auto& copy : all) in_part[copy] = {copy};
    for (const Reduction& r : p.reductions) {
      if (!r.parameter.empty() || r.members[0].stage != stage) continue;
      Copies members, sum;
      std::set<int> parts;
      size_t added = 0;
      for (const StageCopy& m : r.members) {
        if (m.stage != stage) return "a sum of several stages";
        members.insert({m.device, m.replica});
        parts.insert(ShardOf(p, m).index);
        const Copies& own = in_part[{m.device, m.replica}];
        sum.insert(own.begin(), own.end());
        added += own.size();
      }
      const std::string name = absl::StrCat("stage ", stage);
      if (!SumsEqualParts(p, r.scatter)) {
        if (r.scatter ? sum != members && added != members.size() : members != all) {
          return absl::StrCat(name, " is not summed over all copies that share it");
        }
        sum = members;
      } else if (parts.size() > 1 || added != sum.size()) {
        return absl::StrCat(name, ": a sum of different parts, or of what is summed already");
      }
      for (const auto& copy : members) in_part[copy] = sum;
    }
    for (const auto& [copy, summed] : in_part) {
      if (summed != all) return absl::StrCat("copies of stage ", stage, " are not summed");
    }
  }
  return "";
}

// Whether the norm has each gradient once: each part of each stage, and each tie.
std::string CheckNormShares(const Program& p) {
  if (!p.norm.has_value()) return "";
  std::map<std::string, int> of_tie;
  size_t copies = 0;
  for (int stage = 0; stage < p.schedule.num_stages(); ++stage) {
    if (p.schedule.Prepares(stage)) continue;
    std::vector<int> of_part;
    for (const StageCopy& copy : CopiesOf(p.schedule, stage)) {
      ++copies;
      const NormShare share = NormShareOf(p, copy);
      for (const std::string& tie : share.ties) ++of_tie[tie];
      if (!share.own) continue;
      const Shard shard = ShardOf(p, copy);
      of_part.resize(shard.parts);
      ++of_part[shard.index];
    }
    if (of_part.empty() || std::count(of_part.begin(), of_part.end(), 1) !=
                               static_cast<std::ptrdiff_t>(of_part.size())) {
      return absl::StrCat("the norm has not each part of stage ", stage, " once");
    }
  }
  for (const Reduction& r : p.reductions) {
    if (r.parameter.empty() || of_tie[r.parameter] == 1) continue;
    return absl::StrCat("the norm has ", r.parameter, " ", of_tie[r.parameter], " times");
  }
  if (p.norm->members.size() != copies) return "the norm is not summed over all copies";
  return "";
}

}  // namespace

const std::vector<StageCopy>* MembersOf(const Program& program, const Instruction& i) {
  switch (i.op) {
    case OpCode::kReduce:
    case OpCode::kReduceWait:
      return &program.reductions[i.arg].members;
    case OpCode::kGather:
    case OpCode::kGatherWait:
      return &program.gathers[i.arg].members;
    case OpCode::kNorm:
    case OpCode::kNormWait:
      return &program.norm->members;
    default:
      return nullptr;
  }
}

std::string CheckCollectives(const Program& program) {
  for (int d = 0; d < static_cast<int>(program.instructions.size()); ++d) {
    std::string error = DeviceChecker(program, d).Check();
    if (!error.empty()) return error;
  }
  std::string error = CheckMembers(program);
  return error.empty() ? CheckNormShares(program) : error;
}

}  // namespace pipelab
