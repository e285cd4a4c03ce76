#include "tests/support/program_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/attention_meetings.h"
#include "tests/support/collective_checker.h"
#include "tests/support/hop_checker.h"
#include "tests/support/list_checker.h"

namespace pipelab {
namespace {

// The messages of a call are posted together. Passes whose attention meets run while messages are
// on their way, so that sends do not wait there.
bool Posts(const Program& p) { return p.calls != MessageCalls::kNone || !p.exchanges.empty(); }

class Checker {
 public:
  explicit Checker(const Program& p)
      : p_(p), s_(p.schedule), hops_(p), meetings_(p), at_(p.instructions.size(), 0) {}

  std::string Check() {
    error_ = CheckLists(p_);
    if (error_.empty()) error_ = CheckCollectives(p_);
    if (error_.empty()) error_ = meetings_.Check();
    while (error_.empty() && Round()) {
    }
    for (size_t d = 0; error_.empty() && d < at_.size(); ++d) {
      if (at_[d] < p_.instructions[d].size()) {
        const Instruction& i = p_.instructions[d][at_[d]];
        Fail("device ", d, " is stuck at ", at_[d], ": ", OpCodeName(i.op), " ",
             ToString(i.action));
      }
    }
    return error_.empty() ? hops_.End() : error_;
  }

 private:
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (error_.empty()) error_ = absl::StrCat(parts...);
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
        if (i.arg >= 0) return false;  // its attention meets that of other passes
        return Compute(d, i);
      case OpCode::kWait:
        if (arrived_.count(i.arg) == 0) return false;
        Take(i.arg);
        break;
      // A message that is posted waits for its other end.
      case OpCode::kSend:
      case OpCode::kReceive:
        if (!Posts(p_)) return false;
        if (i.op == OpCode::kSend) in_call_[d].push_back(i.arg);
        if (!posted_.insert(i.arg).second) arrived_.insert(i.arg);
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
    CheckMessage(d, i);
    ++at_[d];
    return true;
  }

  bool Compute(int d, const Instruction& i) {
    if (i.replica != s_.placement.replica_of_micro_batch[FirstSample(i.action)]) {
      Fail("wrong replica");
    }
    CheckInputs(d, i.action);
    if (offloaded_.count({d, KeyOf(i.action)}) > 0) {
      Fail(ToString(i.action), " runs while its activations are at the host");
    }
    done_.insert({d, Key(i.action)});
    CheckMessage(d, i);
    ++at_[d];
    return true;
  }

  void CheckMessage(int d, const Instruction& i) {
    const Action& a = i.action;
    if (i.op == OpCode::kSend && !p_.messages[i.arg].is_hop() &&
        !Did(d, a.kind, a.stage, a.micro_batch, a.slice)) {
      Fail("device ", d, " sends what ", ToString(a), " has not made");
    }
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
      CheckMessage(d, *i);
      arrived_.insert(i->arg);
      ++at_[d];
      ++at_[to];
      return true;
    }
    if (i->op == OpCode::kCompute) return i->arg >= 0 && MeetInAttention(i->arg);
    const std::vector<StageCopy>* members = MembersOf(p_, *i);
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

  // The passes of a slot are under way at a time.
  bool MeetInAttention(int32_t exchange) {
    const std::vector<int>& devices = meetings_.DevicesOf(p_.exchanges[exchange].slot);
    for (int other : devices) {
      const Instruction* j = Head(other);
      if (j == nullptr || j->op != OpCode::kCompute || j->arg < 0 ||
          p_.exchanges[j->arg].slot != p_.exchanges[exchange].slot) {
        return false;
      }
    }
    for (int other : devices) Compute(other, *Head(other));
    return true;
  }

  // Behind its wait a device may read a message.
  void Take(int id) {
    const Message& m = p_.messages[id];
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
  int FirstSample(const Action& a) const { return a.micro_batch * s_.MicroBatchSize(a.stage); }

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
      if (edge.output.list()) {
        if (s_.carried[a.micro_batch] < 0) continue;
        made.micro_batch = s_.carried[a.micro_batch];
      }
      if (forward && edge.output.replay()) {
        made.micro_batch = s_.Outputs(edge).Sources(a.micro_batch).first;
      }
      if (backward && !edge.gradient.same()) {
        made.micro_batch -= edge.gradient.number;
        if (edge.gradient.none() || made.micro_batch < 0) continue;
      }
      CheckRows(d, made, e, forward ? edge.from : edge.to, backward);
    }
  }

  // Counts the rows of device d's share that messages brought or that were made here, in units of a
  // sample that both group sizes divide.
  void CheckRows(int d, const Action& a, int edge, int other, bool gradient) {
    const int first = FirstSample(a), mine = s_.MicroBatchSize(a.stage),
              theirs = s_.MicroBatchSize(other);
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
      const int n = s_.MicroBatchSize(stage) * units / static_cast<int>(group.size());
      const int begin = micro_batch * s_.MicroBatchSize(stage) * units + i * n;
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
  AttentionMeetings meetings_;
  std::vector<size_t> at_;
  std::set<int> arrived_;
  std::set<int> posted_;                                           // by one end
  std::set<std::pair<int, std::tuple<int, int, int>>> offloaded_;  // by device
  std::map<int, std::vector<int>> in_call_;  // [device] what it has sent since the last call
  // Those that are awaited, by to_device, edge, micro-batch, slice, gradient.
  std::map<std::tuple<int, int, int, int, bool>, std::vector<int>> by_use_;
  std::set<std::pair<int, ActionKey>> done_;
  std::string error_;
};

}  // namespace

std::string CheckProgram(const Program& program) { return Checker(program).Check(); }

}  // namespace pipelab
