#include "tests/program_mutants.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "pipelines/ir/versions.h"
#include "tests/support/collective_checker.h"

namespace pipelab {
namespace {

// An instruction touches things on its device. Two may trade places if neither writes what the
// other touches, nor adds to what the other reads.
enum class Access : uint8_t { kRead, kAdd, kWrite };
enum class What : uint8_t {
  kOrder,    // of the schedule's actions
  kPair,     // of devices, whose messages keep their order
  kMessage,  // or a copy to the host, or a collective
  kHostLink,
  kOutput,  // of a pass
  kInput,   // of a pass: what is awaited before it
  kWeights,
  kGradients,
  kHops,    // the sum of gradients that travels
  kSum,     // of gradients
  kAllSum,  // of sums, and of tied gradients
  kStepped,
  kNorm,
  kCalls,
};
using Thing = std::tuple<What, int, int, int, int>;
using Touches = std::map<Thing, Access>;

bool Trade(const Touches& a, const Touches& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& touch) {
    const auto other = b.find(touch.first);
    return other == b.end() || (touch.second == other->second && touch.second != Access::kWrite);
  });
}

// Knows what the instructions of a program touch, from its own lists alone: an instruction that
// waits does so for the next pass.
class Footprints {
 public:
  Footprints(const Program& p, int device) : p_(p), d_(device) {}

  Touches Of(size_t at) const {
    const Instruction& i = p_.instructions[d_][at];
    const Action& a = i.action;
    switch (i.op) {
      case OpCode::kCompute:
        return OfPass(i);
      case OpCode::kSend:
      case OpCode::kReceive:
      case OpCode::kWait:
        return OfMessage(at);
      case OpCode::kOffload:
      case OpCode::kReload:
        return {{kOrder, Access::kWrite},
                {kHostLink, Access::kRead},
                {{What::kMessage, 1, i.arg, 0, 0}, Access::kWrite}};
      case OpCode::kHostWait:
        return {{{What::kMessage, 1, i.arg, 0, 0}, Access::kWrite},
                a.kind == ActionKind::kReload ? std::make_pair(NextInput(at), Access::kAdd)
                                              : std::make_pair(kHostLink, Access::kWrite)};
      case OpCode::kSynchronise:
        return {{{What::kCalls, 0, 0, 0, 0}, Access::kWrite}};
      case OpCode::kRelease:
        return {{Copy(What::kWeights, i.replica, a.stage), Access::kWrite}};
      case OpCode::kStep:
        return OfStep(i);
      default:
        return OfCollective(at);
    }
  }

  // The weights that an instruction reads; a thing that it does not touch if it reads none.
  Thing WeightsReadAt(size_t at) const {
    for (const auto& [thing, access] : Of(at)) {
      if (std::get<0>(thing) == What::kWeights && access == Access::kRead) return thing;
    }
    return {What::kWeights, -1, -1, 0, 0};
  }

  // The weights that are brought before their use are there for the pass at this place.
  bool HasWeights(int at) const {
    if (p_.sharding != Sharding::kFully) return true;
    const Thing weights = WeightsReadAt(at);
    const auto brings = [&](const Instruction& i) {
      return i.op == OpCode::kGatherWait || i.op == OpCode::kWait;
    };
    bool brought = false;  // anywhere
    for (int i = static_cast<int>(p_.instructions[d_].size()) - 1; i >= 0; --i) {
      const Touches t = Of(i);
      const auto touch = t.find(weights);
      if (touch == t.end() || touch->second != Access::kWrite) continue;
      if (i < at) return brings(p_.instructions[d_][i]);
      brought |= brings(p_.instructions[d_][i]);
    }
    return !brought;
  }

 private:
  static constexpr Thing kOrder = {What::kOrder, 0, 0, 0, 0};
  static constexpr Thing kHostLink = {What::kHostLink, 0, 0, 0, 0};

  static Thing Pass(What what, const Action& a) {
    return {what, static_cast<int>(a.kind), a.stage, a.micro_batch, a.slice};
  }
  Thing Copy(What what, int replica, int stage) const {
    return {what, p_.schedule.IsOneCopy(stage) ? 0 : replica, stage, 0, 0};
  }
  Thing NextInput(size_t at) const {
    const auto& list = p_.instructions[d_];
    while (list[at].op != OpCode::kCompute || list[at].action.kind == ActionKind::kRecompute) ++at;
    return Pass(What::kInput, list[at].action);
  }

  Touches OfPass(const Instruction& i) const {
    const Action& a = i.action;
    Touches t = {{kOrder, Access::kWrite},
                 {Pass(What::kInput, a), Access::kRead},
                 {Pass(What::kOutput, a), Access::kWrite},
                 {Copy(What::kWeights, i.replica, a.stage), Access::kRead}};
    if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
      t[Copy(What::kGradients, i.replica, a.stage)] = Access::kAdd;
      t[Copy(What::kHops, i.replica, a.stage)] = Access::kAdd;
    }
    return t;
  }

  Touches OfMessage(size_t at) const {
    const Instruction& i = p_.instructions[d_][at];
    const Message& m = p_.messages[i.arg];
    const bool send = i.op == OpCode::kSend, wait = i.op == OpCode::kWait;
    Touches t = {{{What::kMessage, 0, i.arg, 0, 0}, Access::kWrite}};
    if (!wait) t[{What::kPair, m.from_device, m.to_device, 0, 0}] = Access::kWrite;
    if (i.op == OpCode::kReceive) return t;
    if (!m.is_hop()) {
      t[send ? Pass(What::kOutput, i.action) : NextInput(at)] = send ? Access::kRead : Access::kAdd;
    } else if (m.gradient) {
      t[Copy(What::kHops, d_, m.hop_of_stage)] =
          send && IsLastHop(at) ? Access::kWrite : Access::kAdd;
    } else {
      t[Copy(What::kWeights, d_, m.hop_of_stage)] = send ? Access::kRead : Access::kWrite;
    }
    return t;
  }

  Touches OfStep(const Instruction& i) const {
    const auto copy = [&](What what) { return Copy(what, i.replica, i.action.stage); };
    Touches t = {{{What::kNorm, 0, 0, 0, 0}, Access::kRead}};
    if (HasOwnSteps(p_.schedule)) t[kOrder] = Access::kWrite;
    for (What what : {What::kWeights, What::kGradients, What::kHops, What::kStepped}) {
      t[copy(what)] = Access::kWrite;
    }
    for (What what : {What::kSum, What::kAllSum}) t[copy(what)] = Access::kRead;
    return t;
  }

  // Gradients that are added behind a hop are in the next one, or in the owner's own sum.
  bool IsLastHop(size_t at) const {
    const auto& list = p_.instructions[d_];
    const int stage = list[at].action.stage;
    return ShardOf(p_, {d_, d_, stage}).index != 0 &&
           std::none_of(list.begin() + at + 1, list.end(), [&](const Instruction& later) {
             return later.op == OpCode::kSend && later.action.stage == stage &&
                    p_.messages[later.arg].gradient;
           });
  }

  // Gradients that are added behind a run's sum are in the next run's, if there is one.
  bool IsLastScatter(size_t at) const {
    const auto& list = p_.instructions[d_];
    return std::none_of(list.begin() + at + 1, list.end(), [&](const Instruction& later) {
      return later.op == OpCode::kReduce && later.action.stage == list[at].action.stage &&
             later.replica == list[at].replica && p_.reductions[later.arg].scatter;
    });
  }

  Touches OfCollective(size_t at) const {
    const Instruction& i = p_.instructions[d_][at];
    const std::vector<StageCopy>* members = MembersOf(p_, i);
    Touches t;
    if (members == nullptr) return t;
    const bool begins = BeginsCollective(i.op);
    const OpCode begin = static_cast<OpCode>(static_cast<int>(i.op) - (begins ? 0 : 1));
    t[{What::kMessage, static_cast<int>(begin), i.arg, 0, 0}] = Access::kWrite;
    if (i.op == OpCode::kNormWait) t[{What::kNorm, 0, 0, 0, 0}] = Access::kWrite;
    for (const StageCopy& m : *members) {
      if (m.device != d_) continue;
      const auto touch = [&](What what, Access access) {
        t[Copy(what, m.replica, m.stage)] = access;
      };
      if (begin == OpCode::kGather) {
        touch(What::kWeights, Access::kWrite);
        if (begins) touch(What::kStepped, Access::kRead);
      } else if (begin == OpCode::kReduce && !begins) {
        const Reduction& r = p_.reductions[i.arg];
        const bool last = !r.parameter.empty() || SumsEqualParts(p_, r.scatter);
        touch(last ? What::kAllSum : What::kSum, Access::kAdd);
      } else if (begin == OpCode::kReduce) {
        const Reduction& r = p_.reductions[i.arg];
        if (!r.scatter || IsLastScatter(at)) touch(What::kGradients, Access::kRead);
        if (r.parameter.empty() && !r.scatter) touch(What::kSum, Access::kRead);
      } else if (begins) {
        for (What what : {What::kGradients, What::kSum, What::kAllSum}) touch(what, Access::kRead);
      }
    }
    return t;
  }

  const Program& p_;
  const int d_;
};

// Each message, collective and slot of attention is one meeting of all who take part. Devices come
// to the end of their lists if the order of meetings has no circle.
class Meetings {
 public:
  explicit Meetings(const Program& p) {
    for (size_t d = 0; d < p.instructions.size(); ++d) {
      int before = -1;
      std::vector<int> sent;  // in the call
      for (const Instruction& i : p.instructions[d]) {
        const int now = NodeOf(p, i);
        if (before >= 0) Follows(before, now);
        if (i.op == OpCode::kWait) {
          Follows(Named(kSent, i.arg), now);
        } else if (i.op == OpCode::kSend) {
          sent.push_back(i.arg);
        } else if (i.op == OpCode::kSynchronise) {
          for (int id : sent) Follows(Named(kPosted, id), now);
          sent.clear();
        }
        before = now;
      }
    }
  }

  bool CanEnd() {
    std::vector<int> ready;
    for (size_t n = 0; n < before_.size(); ++n) {
      if (before_[n] == 0) ready.push_back(static_cast<int>(n));
    }
    size_t over = 0;
    for (; !ready.empty(); ++over) {
      const int node = ready.back();
      ready.pop_back();
      for (int next : after_[node]) {
        if (--before_[next] == 0) ready.push_back(next);
      }
    }
    return over == before_.size();
  }

 private:
  static constexpr int kSent = -1, kPosted = -2, kSlot = -3;

  int New() {
    before_.push_back(0);
    after_.emplace_back();
    return static_cast<int>(before_.size()) - 1;
  }
  int Named(int what, int arg) {
    const auto [at, inserted] = named_.emplace(std::make_pair(what, arg), 0);
    if (inserted) at->second = New();
    return at->second;
  }
  int NodeOf(const Program& p, const Instruction& i) {
    if (i.op == OpCode::kSend) return Named(kSent, i.arg);
    if (i.op == OpCode::kReceive) {
      const bool meets = p.calls == MessageCalls::kNone && p.exchanges.empty();
      return Named(meets ? kSent : kPosted, i.arg);
    }
    if (MembersOf(p, i) != nullptr) return Named(static_cast<int>(i.op), i.arg);
    if (i.op == OpCode::kCompute && i.arg >= 0) return Named(kSlot, p.exchanges[i.arg].slot);
    return New();
  }
  void Follows(int first, int second) {
    after_[first].push_back(second);
    ++before_[second];
  }

  std::map<std::pair<int, int>, int> named_;
  std::vector<int> before_;
  std::vector<std::vector<int>> after_;
};

// Another number below `limit`.
template <typename Number>
bool Turn(int limit, uint64_t draw, Number* number) {
  if (limit < 2) return false;
  *number = static_cast<Number>((*number + 1 + draw % (limit - 1)) % limit);
  return true;
}

int64_t CountSteps(const Program& p) {
  int64_t steps = 0;
  for (const auto& list : p.instructions) {
    for (const Instruction& i : list) steps += i.op == OpCode::kStep;
  }
  return steps;
}

bool IsLastAndEmpty(const std::vector<Instruction>& list, int call) {
  const auto is_call = [](const Instruction& i) { return i.op == OpCode::kSynchronise; };
  const OpCode before = call > 0 ? list[call - 1].op : OpCode::kCompute;
  return before != OpCode::kSend && before != OpCode::kWait &&
         std::none_of(list.begin() + call + 1, list.end(), is_call);
}

}  // namespace

bool ProgramMutant::Apply(const Program& whole, const CounterRng& rng, uint64_t* n) {
  program = whole;
  const Schedule& s = program.schedule;
  auto& list = program.instructions[device];
  Instruction& i = list[from];
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
  const bool pass = i.op == OpCode::kCompute || IsHostTransfer(i.op) || message;
  const Instruction moved = i;
  const uint64_t draw = rng.Below((*n)++, 1 << 20);
  switch (change) {
    case kDrop:
      list.erase(list.begin() + from);
      return true;
    case kDouble:
      list.insert(list.begin() + draw % (list.size() + 1), moved);
      return true;
    case kMove:
      to = static_cast<int>(draw % list.size());
      list.erase(list.begin() + from);
      list.insert(list.begin() + to, moved);
      return to != from;
    case kToOtherDevice: {
      int other = device;
      if (!Turn(s.num_devices(), draw, &other)) return false;
      list.erase(list.begin() + from);
      auto& others = program.instructions[other];
      others.insert(others.begin() + rng.Below((*n)++, others.size() + 1), moved);
      return true;
    }
    case kMicroBatch:
      return pass && i.action.kind != ActionKind::kStep &&
             Turn(s.MicroBatches(i.action.stage), draw, &i.action.micro_batch);
    case kStage:
      return i.op != OpCode::kSynchronise && Turn(s.num_stages(), draw, &i.action.stage);
    case kExchange: {
      if (i.op != OpCode::kCompute || i.arg < 0) return false;
      int32_t& slot = program.exchanges[i.arg].slot;
      if (draw % 3 == 0) i.arg = -1;
      return draw % 3 == 0 ||
             (draw % 3 == 1 ? Turn(static_cast<int>(program.exchanges.size()), draw, &i.arg)
                            : Turn(program.exchanges.back().slot + 1, draw, &slot));
    }
    default: {
      if (!message) return false;
      Message& m = program.messages[i.arg];
      if (m.is_hop()) return Turn(s.num_stages(), draw, &m.hop_of_stage);
      const StageGraph::Edge& e = s.stages.edges[m.edge];
      if (draw % 3 == 0) m.gradient = !m.gradient;
      return draw % 3 == 0 ||
             (draw % 3 == 1 ? Turn(static_cast<int>(s.stages.edges.size()), draw, &m.edge)
                            : Turn(std::max(s.MicroBatches(e.from), s.MicroBatches(e.to)), draw,
                                   &m.micro_batch));
    }
  }
}

bool ProgramMutant::IsHarmless(const Program& whole) const {
  const auto& list = whole.instructions[device];
  // Without its only step, it is a program that steps nothing. Its last call may have no messages.
  if (change == kDrop && list[from].op == OpCode::kStep && CountSteps(whole) == 1) return true;
  if (change == kDrop && list[from].op == OpCode::kSynchronise && IsLastAndEmpty(list, from)) {
    return true;
  }
  if (change != kMove) return false;
  const Footprints footprints(whole, device);
  const Touches moved = footprints.Of(from);
  // Weights of another run or hop are the same.
  const Thing weights = footprints.WeightsReadAt(from);
  const bool reads = moved.count(weights) > 0;
  if (reads && !Footprints(program, device).HasWeights(to)) return false;
  for (int at = from; at != to;) {
    at += to > from ? 1 : -1;
    Touches passed = footprints.Of(at);
    if (reads) passed.erase(weights);
    if (!Trade(moved, passed)) return false;
  }
  return Meetings(program).CanEnd();
}

}  // namespace pipelab
