#include "pipelines/ir/program_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/collective_checker.h"
#include "pipelines/ir/hop_checker.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

class Checker {
 public:
  explicit Checker(const Program& p)
      : p_(p), s_(p.schedule), hops_(p), at_(p.instructions.size(), 0) {}

  std::string Check() {
    CheckLists();
    if (error_.empty()) error_ = CheckCollectives(p_);
    while (error_.empty() && Round()) {
    }
    for (size_t d = 0; error_.empty() && d < at_.size(); ++d) {
      if (at_[d] < p_.instructions[d].size()) {
        const Instruction& i = p_.instructions[d][at_[d]];
        Fail("device ", d, " is stuck at ", at_[d], ": ", OpCodeName(i.op), " ",
             ToString(i.action));
      }
    }
    return error_;
  }

 private:
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (error_.empty()) error_ = absl::StrCat(parts...);
  }

  // Orders and counts, without running.
  void CheckLists() {
    std::map<std::pair<int, int>, std::vector<int>> sent, posted;
    std::map<int, int> sends, receives, waits;
    filled_.assign(p_.fills.size(), false);
    for (int d = 0; d < s_.num_devices(); ++d) {
      std::vector<Action> computed;
      for (const Instruction& i : p_.instructions[d]) {
        const bool message =
            i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
        if (message) {
          const Message& m = p_.messages[i.arg];
          if ((i.op == OpCode::kSend ? m.from_device : m.to_device) != d) {
            Fail("message on a wrong device");
          }
          if (m.from_device == m.to_device) Fail("a message to itself");
          ++(i.op == OpCode::kSend ? sends : i.op == OpCode::kReceive ? receives : waits)[i.arg];
          if (i.op == OpCode::kSend) sent[{m.from_device, m.to_device}].push_back(i.arg);
          if (i.op == OpCode::kReceive) posted[{m.from_device, m.to_device}].push_back(i.arg);
        }
        if (i.op == OpCode::kCompute) computed.push_back(i.action);
        if (IsHostTransfer(i.op)) CheckHostCopy(d, i);
        if (i.op == OpCode::kFill) CheckFill(d, i.arg);
      }
      std::vector<Action> ordered;
      for (const Action& a : s_.order[d]) {
        if (a.kind != ActionKind::kStep && !IsHostTransfer(a.kind)) ordered.push_back(a);
      }
      if (computed != ordered) Fail("device ", d, " does not compute the schedule's list");
    }
    for (size_t n = 0; n < filled_.size(); ++n) {
      if (!filled_[n]) Fail("fill ", n, " is on no device");
    }
    for (const auto& [d, copies] : copies_) {
      if (!copies.second.empty()) Fail("device ", d, " does not wait for all copies to the host");
    }
    if (sent != posted) Fail("a pair receives in another order than it sends");
    for (int id = 0; id < static_cast<int>(p_.messages.size()); ++id) {
      if (sends[id] != 1 || receives[id] != 1 || waits[id] != 1) {
        const Message& m = p_.messages[id];
        if (m.is_hop()) {
          Fail("hop ", id, " is not sent, posted and waited for exactly once");
          continue;
        }
        const StageGraph::Edge& e = s_.stages.edges[m.edge];
        Fail("message ", id, " for ", m.gradient ? e.from : e.to, m.gradient ? "B" : "F",
             m.micro_batch, " is not sent, posted and waited for exactly once");
      }
    }
  }

  // Lists are walked one after the other: copies are numbered in the list's order, each is waited
  // for once, and what was offloaded before the next copy begins.
  void CheckHostCopy(int device, const Instruction& i) {
    auto& [next, waits] = copies_[device];
    const std::string name = absl::StrCat("device ", device, ": ", OpCodeName(i.op), " ", i.arg);
    if (i.op == OpCode::kHostWait) {
      const auto at = waits.find(i.arg);
      if (at == waits.end() || at->second != i.action) return Fail(name, " waits for no copy");
      waits.erase(at);
      return;
    }
    if ((i.action.kind == ActionKind::kOffload) != (i.op == OpCode::kOffload)) {
      Fail(name, " is of another kind than ", ToString(i.action));
    }
    if (i.arg != next++) Fail(name, " is out of order");
    for (const auto& [id, action] : waits) {
      if (action.kind == ActionKind::kOffload)
        Fail(name, " begins before offload ", id, " is over");
    }
    waits[i.arg] = i.action;
  }

  void CheckFill(int device, int32_t id) {
    if (id < 0 || id >= static_cast<int64_t>(filled_.size())) {
      return Fail("device ", device, " has fill ", id, " of ", filled_.size());
    }
    const Fill& fill = p_.fills[id];
    if (filled_[id]) Fail("fill ", id, " is there twice");
    filled_[id] = true;
    if (fill.time < Nanoseconds(0) || fill.bytes < Bytes(0))
      Fail("fill ", id, " has less than no room");
    if (fill.work > fill.time) {
      Fail("fill ", id, " plans ", fill.work.value(), " ns and may take ", fill.time.value());
    }
  }

  // Every device does what it can do alone; then pairs that meet exchange. False when nothing
  // moved.
  bool Round() {
    bool moved = false;
    for (int d = 0; d < s_.num_devices(); ++d) {
      while (at_[d] < p_.instructions[d].size() && Alone(d)) moved = true;
    }
    for (int d = 0; d < s_.num_devices(); ++d) moved |= Meet(d);
    return moved;
  }

  const Instruction* Head(int d) const {
    return at_[d] < p_.instructions[d].size() ? &p_.instructions[d][at_[d]] : nullptr;
  }

  bool Alone(int d) {
    const Instruction& i = p_.instructions[d][at_[d]];
    switch (i.op) {
      case OpCode::kCompute:
        if (i.replica != s_.placement.replica_of_micro_batch[FirstSample(i.action)]) {
          Fail("wrong replica");
        }
        CheckInputs(d, i.action);
        if (offloaded_.count({d, KeyOf(i.action)}) > 0) {
          Fail(ToString(i.action), " runs while its activations are at the host");
        }
        done_.insert({d, Key(i.action)});
        break;
      case OpCode::kWait:
        if (arrived_.count(i.arg) == 0) return false;
        break;
      // The messages of a call are posted together, and each waits for its other end.
      case OpCode::kSend:
      case OpCode::kReceive:
        if (p_.calls == MessageCalls::kNone) return false;
        if (i.op == OpCode::kSend) in_call_[d].push_back(i.arg);
        if (!posted_.insert(i.arg).second) Arrive(i.arg);
        break;
      case OpCode::kSynchronise:
        for (int sent : in_call_[d]) {
          if (arrived_.count(sent) == 0) return false;
        }
        in_call_[d].clear();
        break;
      case OpCode::kStep:
      case OpCode::kRelease:
      case OpCode::kFill:
      case OpCode::kReload:
        break;
      case OpCode::kOffload:
        if (!Did(d, ActionKind::kForward, i.action.stage, i.action.micro_batch, i.action.slice)) {
          Fail(ToString(i.action), " without its forward");
        }
        offloaded_.insert({d, KeyOf(i.action)});
        break;
      case OpCode::kHostWait:
        if (i.action.kind == ActionKind::kReload) offloaded_.erase({d, KeyOf(i.action)});
        break;
      default:
        return false;
    }
    CheckHop(d, i);
    ++at_[d];
    return true;
  }

  void CheckHop(int d, const Instruction& i) {
    const std::string error = hops_.Run(d, i);
    if (!error.empty()) Fail(error);
  }

  bool Meet(int d) {
    const Instruction* i = Head(d);
    if (i == nullptr) return false;
    if (i->op == OpCode::kSend) {
      const int to = p_.messages[i->arg].to_device;
      const Instruction* j = Head(to);
      if (j == nullptr || j->op != OpCode::kReceive || j->arg != i->arg) return false;
      CheckHop(d, *i);
      Arrive(i->arg);
      ++at_[d];
      ++at_[to];
      return true;
    }
    const std::vector<StageCopy>* members = nullptr;
    if (i->op == OpCode::kReduce || i->op == OpCode::kReduceWait) {
      members = &p_.reductions[i->arg].members;
    } else if (i->op == OpCode::kGather || i->op == OpCode::kGatherWait) {
      members = &p_.gathers[i->arg].members;
    } else if (i->op == OpCode::kNorm || i->op == OpCode::kNormWait) {
      members = &p_.norm->members;
    }
    if (members == nullptr) return false;
    const OpCode op = i->op;
    const int32_t arg = i->arg;
    std::set<int> devices;
    for (const StageCopy& m : *members) devices.insert(m.device);
    for (int other : devices) {
      const Instruction* j = Head(other);
      if (j == nullptr || j->op != op || j->arg != arg) return false;
    }
    for (int other : devices) ++at_[other];
    return true;
  }

  void Arrive(int id) {
    const Message& m = p_.messages[id];
    arrived_.insert(id);
    if (m.is_hop()) return;
    by_use_[{m.to_device, m.edge, m.micro_batch, m.slice, m.gradient}].push_back(id);
  }

  static std::tuple<int, int, int> KeyOf(const Action& a) {
    return {a.stage, a.micro_batch, a.slice};
  }
  using ActionKey = std::tuple<ActionKind, int, int, int>;
  static ActionKey Key(const Action& a) { return {a.kind, a.stage, a.micro_batch, a.slice}; }
  bool Did(int d, ActionKind kind, int stage, int micro_batch, int slice) const {
    return done_.count({d, {kind, stage, micro_batch, slice}}) > 0;
  }
  // Samples are the smallest micro-batches.
  int SamplesOf(int stage) const {
    return s_.micro_batches_of_stage.empty() || s_.replay > 0
               ? 1
               : s_.num_micro_batches / s_.micro_batches_of_stage[stage];
  }
  int FirstSample(const Action& a) const { return a.micro_batch * SamplesOf(a.stage); }

  void CheckInputs(int d, const Action& a) {
    const bool forward = a.kind == ActionKind::kForward;
    const bool backward = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
    const auto did = [&](ActionKind kind) { return Did(d, kind, a.stage, a.micro_batch, a.slice); };
    if (!forward && !did(ActionKind::kForward)) {
      Fail(ToString(a), " without its forward");
    }
    if (a.kind == ActionKind::kBackwardWeight && !did(ActionKind::kBackwardInput)) {
      Fail(ToString(a), " without its input part");
    }
    if (!forward && !backward) return;
    for (int e : forward ? s_.stages.in_edges[a.stage] : s_.stages.out_edges[a.stage]) {
      const StageGraph::Edge& edge = s_.stages.edges[e];
      Action made = a;  // whose output or gradient it takes
      if (edge.carries) {
        if (s_.carried[a.micro_batch] < 0) continue;
        made.micro_batch = s_.carried[a.micro_batch];
      }
      if (forward && s_.replay > 0) made.micro_batch = s_.SourceOf(edge, a.micro_batch);
      if (backward && edge.lag != 0) {
        made.micro_batch -= edge.lag;
        if (edge.lag == StageGraph::kNoGradient || made.micro_batch < 0) continue;
      }
      CheckRows(d, made, e, forward ? edge.from : edge.to, backward);
    }
  }

  // Counts the rows of device d's share that messages brought or that were made here, in units of a
  // sample that both group sizes divide.
  void CheckRows(int d, const Action& a, int edge, int other, bool gradient) {
    const int first = FirstSample(a), mine = SamplesOf(a.stage), theirs = SamplesOf(other);
    const auto& groups = s_.placement.groups[s_.placement.replica_of_micro_batch[first]];
    const int units = static_cast<int>(groups[a.stage].size() * groups[other].size());
    std::vector<bool> have(mine * units, false);  // from the action's first sample on
    const auto take = [&](int begin, int end) {
      for (int u = std::max(begin - first * units, 0);
           u < std::min(end - first * units, mine * units); ++u) {
        if (have[u]) Fail(ToString(a), " gets rows twice");
        have[u] = true;
      }
    };
    // The units that a member has of a stage's micro-batch.
    const auto share = [&](int stage, int device, int micro_batch) {
      const std::vector<int>& group = groups[stage];
      const int i = static_cast<int>(std::find(group.begin(), group.end(), device) - group.begin());
      const int n = SamplesOf(stage) * units / static_cast<int>(group.size());
      const int begin = micro_batch * SamplesOf(stage) * units + i * n;
      return std::make_pair(begin, begin + n);
    };
    const int of_message = std::min(mine, theirs);
    for (int m = first / of_message; m < (first + mine) / of_message; ++m) {
      for (int id : by_use_[{d, edge, m, a.slice, gradient}]) {
        const Message& message = p_.messages[id];
        const int whole = of_message * units, parts = message.row_parts;
        if (whole * message.row_begin % parts != 0) Fail(ToString(a), " gets a part of a unit");
        take(m * whole + whole * message.row_begin / parts,
             m * whole + whole * message.row_end / parts);
      }
    }
    const bool both = std::count(groups[other].begin(), groups[other].end(), d) > 0;
    for (int m = first / theirs; both && m * theirs < first + mine; ++m) {
      const bool made = gradient ? Did(d, ActionKind::kBackward, other, m, a.slice) ||
                                       Did(d, ActionKind::kBackwardInput, other, m, a.slice)
                                 : Did(d, ActionKind::kForward, other, m, a.slice);
      const auto [begin, end] = share(other, d, m);
      if (made) take(begin, end);
    }
    const auto [begin, end] = share(a.stage, d, a.micro_batch);
    for (int u = begin - first * units; u < end - first * units; ++u) {
      if (!have[u]) Fail("device ", d, ": ", ToString(a), " runs without all rows of edge ", edge);
    }
  }

  const Program& p_;
  const Schedule& s_;
  HopChecker hops_;
  std::vector<size_t> at_;
  std::set<int> arrived_;
  std::set<int> posted_;  // by one end; calls only
  // [device] The next copy's number, and those that are not waited for.
  std::map<int, std::pair<int32_t, std::map<int32_t, Action>>> copies_;
  std::set<std::pair<int, std::tuple<int, int, int>>> offloaded_;  // by device
  std::vector<bool> filled_;                                       // [fill] seen in a list
  std::map<int, std::vector<int>> in_call_;  // [device] what it has sent since the last call
  // The same by to_device, edge, micro-batch, slice, gradient.
  std::map<std::tuple<int, int, int, int, bool>, std::vector<int>> by_use_;
  std::set<std::pair<int, ActionKey>> done_;
  std::string error_;
};

}  // namespace

std::string CheckProgram(const Program& program) { return Checker(program).Check(); }

}  // namespace pipelab
