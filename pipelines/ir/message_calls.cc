#include "pipelines/ir/message_calls.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("grouped calls: ", parts...));
}

// A forward, or a backward with the recomputation before it.
struct Pass {
  bool forward = false;
  std::vector<Instruction> receives, computes, sends;
};

struct DeviceList {
  std::vector<Pass> passes;
  std::vector<Instruction> tail;  // collectives and steps
};

absl::StatusOr<DeviceList> PassesOf(const Program& program, int device) {
  DeviceList list;
  Pass pass;
  for (const Instruction& i : program.instructions[device]) {
    switch (i.op) {
      case OpCode::kReceive:
        break;
      case OpCode::kWait:
        pass.receives.push_back(i);
        break;
      case OpCode::kSend:
        list.passes.back().sends.push_back(i);
        break;
      case OpCode::kCompute:
        if (!list.tail.empty()) {
          return Refuse("device ", device, " has a collective before ", ToString(i.action));
        }
        pass.computes.push_back(i);
        if (i.action.kind == ActionKind::kRecompute) break;
        pass.forward = i.action.kind == ActionKind::kForward;
        if (!pass.forward && i.action.kind != ActionKind::kBackward) {
          return Refuse("passes are F and B, not ", ToString(i.action));
        }
        list.passes.push_back(std::exchange(pass, Pass()));
        break;
      default:
        list.tail.push_back(i);
    }
  }
  return list;
}

int LeadingForwards(const std::vector<Pass>& passes) {
  const auto end =
      std::find_if(passes.begin(), passes.end(), [](const Pass& p) { return !p.forward; });
  return static_cast<int>(end - passes.begin());
}

// Forwards of warm-up, then one forward and one backward in turn, then backwards.
bool TakesTurns(const std::vector<Pass>& passes, int warm_up) {
  const int all = static_cast<int>(passes.size()), turns = all - warm_up;
  for (int i = 0; i < all; ++i) {
    const bool forward = i < warm_up || (i < turns && (i - warm_up) % 2 == 0);
    if (passes[i].forward != forward) return false;
  }
  return true;
}

// Writes one device's list anew.
class CallWriter {
 public:
  explicit CallWriter(const DeviceList& list)
      : passes_(list.passes), forwards_(static_cast<int>(passes_.size()) / 2) {}

  // What turns between a forward and a backward: one call, or two.
  enum class Turn : uint8_t { kTogether, kSendsFirst, kReceivesFirst };
  std::vector<Instruction> OneNeighbour(int warm_up, Turn turn) {
    const bool steady = forwards_ > warm_up;
    Receive(0);
    Call(/*empty=*/false);
    for (size_t i = 0; i < passes_.size(); ++i) {
      Compute(i);
      const bool turns =
          steady && i + 1 < passes_.size() && passes_[i].forward != passes_[i + 1].forward;
      std::vector<Instruction> later;
      if (turns && turn == Turn::kReceivesFirst) later = std::exchange(sends_, {});
      if (!turns || turn == Turn::kSendsFirst) Call(/*empty=*/false);
      Receive(i + 1);
      Call(/*empty=*/false);
      sends_ = std::move(later);
      Call(/*empty=*/false);
    }
    return std::move(list_);
  }

  std::vector<Instruction> BothNeighbours(int warm_up, bool forwards_first) {
    const size_t remaining = forwards_ - warm_up;
    const size_t first_backward = warm_up + (remaining > 0 ? 1 : 0);
    Receive(0);
    Call(/*empty=*/false);
    size_t at = 0;
    for (int k = 0; k < warm_up; ++k) {
      Compute(at++);
      if (k + 1 < forwards_) Receive(at);
      if (k + 1 == warm_up && !forwards_first) Receive(first_backward);
      Call(/*empty=*/true);
    }
    for (size_t pair = 0; pair < remaining; ++pair) {
      Compute(at++);
      Compute(at++);
      const bool last = pair + 1 == remaining;
      if (!last) Receive(at);
      Receive(at + (last ? 0 : 1));
      Call(/*empty=*/true);
    }
    if (forwards_first) {
      Receive(at);
      Call(/*empty=*/false);
    }
    while (at < passes_.size()) {
      Compute(at++);
      Receive(at);
      Call(/*empty=*/true);
    }
    return std::move(list_);
  }

 private:
  void Compute(size_t pass) {
    list_.insert(list_.end(), passes_[pass].computes.begin(), passes_[pass].computes.end());
    sends_.insert(sends_.end(), passes_[pass].sends.begin(), passes_[pass].sends.end());
    last_ = passes_[pass].computes.back();
  }

  // What the pass needs, with the next call; nothing behind the last pass.
  void Receive(size_t pass) {
    if (pass >= passes_.size()) return;
    const std::vector<Instruction>& receives = passes_[pass].receives;
    waits_.insert(waits_.end(), receives.begin(), receives.end());
    if (list_.empty()) last_ = passes_[pass].computes.back();
  }

  // `empty`: also without messages.
  void Call(bool empty) {
    if (!empty && sends_.empty() && waits_.empty()) return;
    for (Instruction receive : waits_) {
      receive.op = OpCode::kReceive;
      list_.push_back(receive);
    }
    list_.insert(list_.end(), sends_.begin(), sends_.end());
    list_.insert(list_.end(), waits_.begin(), waits_.end());
    list_.push_back({OpCode::kSynchronise, last_.replica, last_.action, calls_++});
    sends_.clear();
    waits_.clear();
  }

  const std::vector<Pass>& passes_;
  const int forwards_;
  std::vector<Instruction> list_, sends_, waits_;  // of the call that is being put together
  Instruction last_;
  int32_t calls_ = 0;
};

// Where a device is in the pipeline: the group of its first stage says so.
struct Pipeline {
  int devices = 0, virtual_stages = 0;
  std::vector<int> rank;  // [device]
};

absl::StatusOr<Pipeline> PipelineOf(const Schedule& s) {
  Pipeline pipeline;
  if (s.placement.num_replicas() != 1) return Refuse("one pipeline, not several replicas");
  pipeline.rank.assign(s.num_devices(), -1);
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    const std::vector<int>& group = s.placement.groups[0][stage];
    if (pipeline.rank[group[0]] < 0) {
      for (int d : group) pipeline.rank[d] = pipeline.devices;
      ++pipeline.devices;
    } else if (pipeline.rank[group[0]] != stage % pipeline.devices) {
      return Refuse("stage ", stage, " is not on device ", stage % pipeline.devices,
                    " of the pipeline");
    }
  }
  pipeline.virtual_stages = s.num_stages() / pipeline.devices;
  if (s.forward_only) return Refuse("passes go both ways; here are forwards alone");
  if (!s.stages.AllGradientsAreOwn())
    return Refuse("each gradient goes back at once; some here are late or none");
  for (const StageGraph::Edge& e : s.stages.edges) {
    if (e.to == e.from + 1) continue;
    return Refuse("messages go to the next stage; this model has an edge from stage ", e.from,
                  " to stage ", e.to);
  }
  return pipeline;
}

absl::Status CheckSizes(MessageCalls calls, const Pipeline& pipeline, const Schedule& s) {
  if (calls != MessageCalls::kBothNeighbours) {
    if (pipeline.virtual_stages == 1) return absl::OkStatus();
    return Refuse("1F1B has one stage per device, not ", pipeline.virtual_stages);
  }
  if (pipeline.devices < 3) {
    return Refuse("interleaved 1F1B needs P of at least 3, not ", pipeline.devices,
                  ": with 2 the messages to the next and the previous device are alike");
  }
  if (s.num_micro_batches % pipeline.devices == 0) return absl::OkStatus();
  return Refuse("M=", s.num_micro_batches, " must be a multiple of P=", pipeline.devices);
}

// Runs the lists against one another, without times: a call ends once both ends of all its messages
// are in calls that have begun.
class CallWalk {
 public:
  explicit CallWalk(const Program& program)
      : program_(program),
        ends_(program.messages.size(), 0),
        open_(program.instructions.size()),
        position_(program.instructions.size(), 0) {}

  absl::Status Run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t d = 0; d < position_.size(); ++d) moves |= Advance(d);
    }
    for (size_t d = 0; d < position_.size(); ++d) {
      if (position_[d] == program_.instructions[d].size()) continue;
      const Message& m = program_.messages[*std::find_if(open_[d].begin(), open_[d].end(),
                                                         [&](int32_t id) { return !Is(id); })];
      return Refuse("device ", d, " would wait for ever in its call after ",
                    ToString(program_.instructions[d][position_[d]].action), ", for device ",
                    static_cast<size_t>(m.from_device) == d ? m.to_device : m.from_device,
                    ", which waits for others in turn");
    }
    return absl::OkStatus();
  }

 private:
  bool Is(int32_t message) const { return ends_[message] == 2; }

  // Whether the device gets on.
  bool Advance(size_t d) {
    const std::vector<Instruction>& list = program_.instructions[d];
    const size_t from = position_[d];
    for (size_t& at = position_[d]; at < list.size(); ++at) {
      if (list[at].op == OpCode::kSend || list[at].op == OpCode::kReceive) {
        ++ends_[list[at].arg];
        open_[d].push_back(list[at].arg);
      } else if (list[at].op == OpCode::kSynchronise) {
        const auto is = [this](int32_t id) { return Is(id); };
        if (!std::all_of(open_[d].begin(), open_[d].end(), is)) break;
        open_[d].clear();
      }
    }
    return position_[d] > from;
  }

  const Program& program_;
  std::vector<uint8_t> ends_;               // [message] that are in calls
  std::vector<std::vector<int32_t>> open_;  // [device] the messages of its call
  std::vector<size_t> position_;            // [device]
};

}  // namespace

absl::Status GroupMessages(MessageCalls calls, Program* program) {
  if (calls == MessageCalls::kNone) return absl::OkStatus();
  const Schedule& s = program->schedule;
  PIPELAB_ASSIGN_OR_RETURN(const Pipeline pipeline, PipelineOf(s));
  PIPELAB_RETURN_IF_ERROR(CheckSizes(calls, pipeline, s));
  const int p = pipeline.devices, v = pipeline.virtual_stages, slices = s.num_slices;
  const int all = s.num_micro_batches * slices * v;
  const int group = (p + slices - 1) / slices * slices;  // of whole micro-batches
  std::vector<DeviceList> lists;
  for (int d = 0; d < s.num_devices(); ++d) {
    PIPELAB_ASSIGN_OR_RETURN(lists.emplace_back(), PassesOf(*program, d));
  }
  // The last device's order says whether all forwards run first.
  const bool forwards_first = LeadingForwards(lists[s.placement.groups[0][p - 1][0]].passes) == all;
  for (int d = 0; d < s.num_devices(); ++d) {
    const int behind = p - 1 - pipeline.rank[d];
    const bool one = calls != MessageCalls::kBothNeighbours;
    int warm_up = std::min((one ? behind : 2 * behind + (v - 1) * group) + slices - 1, all);
    if (!one && forwards_first) warm_up = all;
    if (!TakesTurns(lists[d].passes, warm_up)) {
      return Refuse("device ", d, " does not run ", warm_up,
                    " forwards and then a forward and a backward in turn, as ",
                    one ? "1F1B" : "interleaved 1F1B", " does");
    }
    CallWriter writer(lists[d]);
    std::vector<Instruction>& list = program->instructions[d];
    using Turn = CallWriter::Turn;
    const Turn turn = calls == MessageCalls::kOneNeighbour ? Turn::kTogether
                      : pipeline.rank[d] % 2 == 0          ? Turn::kSendsFirst
                                                           : Turn::kReceivesFirst;
    list =
        one ? writer.OneNeighbour(warm_up, turn) : writer.BothNeighbours(warm_up, forwards_first);
    list.insert(list.end(), lists[d].tail.begin(), lists[d].tail.end());
  }
  program->calls = calls;
  return CallWalk(*program).Run();
}

}  // namespace pipelab
