#include "tests/support/list_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/versions.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

class ListChecker {
 public:
  explicit ListChecker(const Program& p) : p_(p), s_(p.schedule) {}

  std::string Check() {
    filled_.assign(p_.fills.size(), false);
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (p_.calls != MessageCalls::kNone) CheckCalls(d);
      for (const Instruction& i : p_.instructions[d]) {
        if (i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait) {
          CheckMessage(d, i);
        }
        if (IsHostTransfer(i.op)) CheckHostCopy(d, i);
        if (i.op == OpCode::kFill) CheckFill(d, i.arg);
      }
      CheckOrder(d);
    }
    for (size_t n = 0; n < filled_.size(); ++n) {
      if (!filled_[n]) Fail("fill ", n, " is on no device");
    }
    for (const auto& [d, copies] : copies_) {
      if (!copies.second.empty()) Fail("device ", d, " does not wait for all copies to the host");
    }
    if (sent_ != posted_) Fail("a pair receives in another order than it sends");
    CheckCounts();
    return error_;
  }

 private:
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (error_.empty()) error_ = absl::StrCat(parts...);
  }

  void CheckMessage(int d, const Instruction& i) {
    const Message& m = p_.messages[i.arg];
    const bool send = i.op == OpCode::kSend;
    if ((send ? m.from_device : m.to_device) != d) Fail("message on a wrong device");
    if (m.from_device == m.to_device) Fail("a message to itself");
    if (!Makes(i.action, m)) {
      Fail("device ", d, ": ", OpCodeName(i.op), " ", i.arg, " is not of ", ToString(i.action));
    }
    if (i.op == OpCode::kWait) {
      ++waits_[i.arg];
    } else {
      (send ? sent_ : posted_)[{m.from_device, m.to_device}].push_back(i.arg);
      ++(send ? sends_ : receives_)[i.arg];
    }
  }

  void CheckCounts() {
    for (int id = 0; id < static_cast<int>(p_.messages.size()); ++id) {
      if (sends_[id] == 1 && receives_[id] == 1 && waits_[id] == 1) continue;
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

  void CheckOrder(int d) {
    const bool own_steps = HasOwnSteps(s_);
    std::vector<Action> has, ordered;
    for (const Instruction& i : p_.instructions[d]) {
      if (i.op == OpCode::kCompute || i.op == OpCode::kOffload || i.op == OpCode::kReload ||
          (i.op == OpCode::kStep && own_steps)) {
        has.push_back(i.action);
      }
    }
    for (const Action& a : s_.order[d]) {
      ordered.insert(ordered.end(), a.kind == ActionKind::kStep ? CopiesOn(d, a.stage) : 1, a);
    }
    if (has != ordered) Fail("device ", d, " does not compute the schedule's list");
  }

  // Copies of a stage on a device, each of which a step of the stage steps.
  int CopiesOn(int device, int stage) const {
    int copies = 0;
    for (const auto& replica : s_.placement.groups) {
      copies += static_cast<int>(std::count(replica[stage].begin(), replica[stage].end(), device));
      if (s_.IsOneCopy(stage)) break;
    }
    return copies;
  }

  // The message has the action's output or gradient, or is a hop of its stage.
  bool Makes(const Action& a, const Message& m) const {
    if (m.is_hop()) return a.kind == ActionKind::kStep && a.stage == m.hop_of_stage;
    const StageGraph::Edge& e = s_.stages.edges[m.edge];
    const int size = std::min(s_.MicroBatchSize(e.from), s_.MicroBatchSize(e.to));
    const bool backward = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
    return (m.gradient ? backward : a.kind == ActionKind::kForward) &&
           a.stage == (m.gradient ? e.to : e.from) && a.slice == m.slice &&
           a.micro_batch == m.micro_batch * size / s_.MicroBatchSize(a.stage);
  }

  // Calls are numbered, and nothing else begins before one is over. A message that is received is
  // awaited in the call that posts it.
  void CheckCalls(int d) {
    int32_t calls = 0;
    std::set<int> open;  // the messages of the call
    for (const Instruction& i : p_.instructions[d]) {
      if (i.op == OpCode::kSynchronise) {
        if (i.arg != calls++) Fail("device ", d, ": call ", i.arg, " is out of order");
        open.clear();
      } else if (i.op == OpCode::kSend || i.op == OpCode::kReceive) {
        open.insert(i.arg);
      } else if (i.op == OpCode::kWait ? open.count(i.arg) == 0 : !open.empty()) {
        Fail("device ", d, ": ", OpCodeName(i.op), " ", ToString(i.action), " in call ", calls,
             ", which it is not of");
      }
    }
    if (!open.empty()) Fail("device ", d, " does not end its last call");
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

  const Program& p_;
  const Schedule& s_;
  std::map<std::pair<int, int>, std::vector<int>> sent_, posted_;  // by the pair of devices
  std::map<int, int> sends_, receives_, waits_;                    // [message]
  // [device] The next copy's number, and those that are not waited for.
  std::map<int, std::pair<int32_t, std::map<int32_t, Action>>> copies_;
  std::vector<bool> filled_;  // [fill] seen in a list
  std::string error_;
};

}  // namespace

std::string CheckLists(const Program& program) { return ListChecker(program).Check(); }

}  // namespace pipelab
