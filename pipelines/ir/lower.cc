#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "pipelines/ir/collective_writer.h"
#include "pipelines/ir/flow_maps.h"
#include "pipelines/ir/global_order.h"
#include "pipelines/ir/message_calls.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/slice_exchange.h"
#include "pipelines/ir/stage_io.h"
#include "pipelines/ir/validate.h"
#include "pipelines/ir/weight_ring.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Appends instructions device by device while the schedule is walked in its global order.
class Lowering {
 public:
  Lowering(Schedule schedule, StageIoTable stage_io) : stage_io_(std::move(stage_io)) {
    program_.schedule = std::move(schedule);
    const Schedule& s = program_.schedule;
    int64_t slots = 0;
    for (int e = 0; e < static_cast<int>(s.stages.edges.size()); ++e) {
      first_slot_.push_back(slots);
      slots += int64_t{2} * MessageMicroBatches(e) * s.num_slices * stage_io_.num_pieces(e);
    }
    message_in_slot_.resize(slots, -1);
    program_.instructions.resize(s.num_devices());
    host_copies_.resize(s.num_devices());
    unequal_passes_ = s.HasUnequalPasses();
    flows_ = FlowMaps(s);
    next_pass_.resize(s.num_stages(), 0);
    later_receives_.resize(s.num_stages());
    Reserve();
  }

  absl::Status PrepareCollectives(const LoweringOptions& options) {
    PIPELAB_ASSIGN_OR_RETURN(collectives_, CollectiveWriter::Make(&program_, options));
    return absl::OkStatus();
  }

  // One action at its place in the global order.
  void Visit(int d, int32_t position) {
    const Action& a = program_.schedule.order[d][position];
    collectives_->Before(d, position);
    if (a.kind == ActionKind::kStep) {
      AddSteps(d, a);
    } else if (IsHostTransfer(a.kind)) {
      AddHostCopy(d, a);
    } else {
      AddCompute(d, a);
    }
    collectives_->After(d, position);
  }

  // Weights that travel: turn by turn, what moves beside a turn posted at its begin.
  void VisitInTurns(const WeightRing& ring) {
    std::vector<int32_t> position(ring.turns.size(), 0);
    std::vector<std::vector<int32_t>> brought(  // [device][stage] the weights' message
        ring.turns.size(), std::vector<int32_t>(ring.turns.size(), -1));
    // [turn] The messages that it is the last one for.
    std::vector<std::vector<int32_t>> sums(ring.num_turns()), weights(ring.num_turns());
    for (int t = 0; t < ring.num_turns(); ++t) {
      for (const WeightHop& h : ring.gradients[t]) {
        sums[t + h.turns - 1].push_back(AddHop(h, true));
      }
      for (const WeightHop& h : ring.weights[t]) {
        weights[t + h.turns - 1].push_back(AddHop(h, false));
      }
      for (int d = 0; d < static_cast<int>(ring.turns.size()); ++d) {
        int32_t& at = position[d];
        for (; at < static_cast<int32_t>(ring.turns[d].size()) && ring.turns[d][at] == t; ++at) {
          Visit(d, at);
        }
      }
      for (int32_t id : sums[t]) AwaitHop(id);
      for (const WeightRing::Place& p : ring.released[t]) {
        Append(p.device, OpCode::kRelease, p.device, HopOf(p.stage), brought[p.device][p.stage]);
      }
      for (int32_t id : weights[t]) {
        AwaitHop(id);
        const Message& m = program_.messages[id];
        brought[m.to_device][m.hop_of_stage] = id;
      }
    }
  }

  Program Finish() && {
    collectives_->Finish();
    return std::move(program_);
  }

  const Schedule& schedule() const { return program_.schedule; }

 private:
  void AddCompute(int d, const Action& a) {
    const int replica = program_.schedule.ReplicaOf(a.stage, a.micro_batch);
    const StageIo& stage_io = stage_io_.Of(replica, a.stage, d, a.micro_batch);
    const bool forward = a.kind == ActionKind::kForward;
    const bool backward = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
    if (forward && unequal_passes_) PostReceives(a);
    if (forward || backward) {
      for (const EdgeMessage& p : forward ? stage_io.in : stage_io.out) {
        if (flows_.Along(p.edge, backward).IsFirstRead(a.micro_batch))
          AddWait(d, replica, a, p, backward);
      }
    }
    if (backward) AwaitReload(d, replica, a);
    Append(d, OpCode::kCompute, replica, a, -1);
    if (forward || backward) {
      for (const EdgeMessage& p : forward ? stage_io.out : stage_io.in) {
        if (flows_.Along(p.edge, backward).Readers(a.micro_batch).empty()) continue;
        AddMessage(d, replica, a, p, backward);
      }
    }
  }

  // The copy before is over before the next begins, if it is one whose memory is to be free.
  void AddHostCopy(int d, const Action& a) {
    HostCopies& copies = host_copies_[d];
    const int replica = program_.schedule.ReplicaOf(a.stage, a.micro_batch);
    if (copies.offload >= 0) {
      const Action& before = copies.offloaded;
      Append(d, OpCode::kHostWait, program_.schedule.ReplicaOf(before.stage, before.micro_batch),
             before, copies.offload);
      copies.offload = -1;
    }
    const int32_t id = copies.count++;
    if (a.kind == ActionKind::kReload) {
      copies.reloads[{a.stage, a.micro_batch, a.slice}] = id;
      Append(d, OpCode::kReload, replica, a, id);
    } else {
      copies.offload = id;
      copies.offloaded = a;
      Append(d, OpCode::kOffload, replica, a, id);
    }
  }

  void AwaitReload(int d, int replica, const Action& backward) {
    if (host_copies_[d].reloads.empty()) return;
    const auto at =
        host_copies_[d].reloads.find({backward.stage, backward.micro_batch, backward.slice});
    if (at == host_copies_[d].reloads.end()) return;
    Action reload = backward;
    reload.kind = ActionKind::kReload;
    Append(d, OpCode::kHostWait, replica, reload, at->second);
    host_copies_[d].reloads.erase(at);
  }

  // A buffer has what its stage reads in this pass or the next, and what it may read again. A stage
  // with fewer passes would fill it at once: its receives wait for this pass of their reader.
  // Sends never wait for those of a later pass, so nothing deadlocks.
  void PostReceives(const Action& a) {
    std::deque<LaterReceive>& later = later_receives_[a.stage];
    next_pass_[a.stage] = a.micro_batch + 1;
    for (; !later.empty() && later.front().first_reader <= next_pass_[a.stage]; later.pop_front()) {
      const LaterReceive& r = later.front();
      Append(program_.messages[r.id].to_device, OpCode::kReceive, r.replica, producer_[r.id], r.id);
    }
  }

  void Append(int d, OpCode op, int replica, const Action& a, int32_t arg) {
    AppendInstruction(&program_, d, op, replica, a, arg);
  }

  // Micro-batches of the edge's end that has the smaller ones.
  int64_t MessageMicroBatches(int edge) const {
    const Schedule& s = program_.schedule;
    const StageGraph::Edge& e = s.stages.edges[edge];
    return std::max(s.MicroBatches(e.from), s.MicroBatches(e.to));
  }

  // `micro_batch`: the message's.
  int64_t Slot(const Action& a, const EdgeMessage& p, bool gradient, int micro_batch) const {
    const Schedule& s = program_.schedule;
    const int64_t transfer =
        (gradient * MessageMicroBatches(p.edge) + micro_batch) * s.num_slices + a.slice;
    return first_slot_[p.edge] + transfer * stage_io_.num_pieces(p.edge) + p.piece;
  }

  void AddWait(int d, int replica, const Action& a, const EdgeMessage& p, bool gradient) {
    const int read = flows_.Along(p.edge, gradient).SamplePass(a.micro_batch);
    const int32_t id = message_in_slot_[Slot(a, p, gradient, p.MicroBatch(read))];
    CHECK_GE(id, 0) << "the global order runs " << ToString(a) << " before its input exists";
    Append(d, OpCode::kWait, replica, producer_[id], id);
  }

  // The send goes to the producer's list and, at the same point of the global order, the receive to
  // the consumer's: what freedom from deadlock and equal orders of sends and receives rest on.
  void AddMessage(int d, int replica, const Action& a, const EdgeMessage& p, bool gradient) {
    const int32_t id = static_cast<int32_t>(program_.messages.size());
    Message m;
    m.from_device = static_cast<int16_t>(d);
    m.to_device = p.peer;
    m.edge = p.edge;
    m.micro_batch = p.MicroBatch(a.micro_batch);
    m.slice = a.slice;
    m.gradient = gradient;
    m.row_begin = p.row_begin;
    m.row_end = p.row_end;
    m.row_parts = p.row_parts;
    program_.messages.push_back(m);
    producer_.push_back(a);
    message_in_slot_[Slot(a, p, gradient, m.micro_batch)] = id;
    Append(d, OpCode::kSend, replica, a, id);
    if (unequal_passes_) {
      const int first_reader = flows_.Along(p.edge, gradient).FirstReader(a.micro_batch);
      const int reader = program_.schedule.stages.edges[p.edge].to;
      if (first_reader > next_pass_[reader]) {
        later_receives_[reader].push_back({first_reader, replica, id});
        return;
      }
    }
    Append(p.peer, OpCode::kReceive, replica, a, id);
  }

  static Action HopOf(int stage) {
    Action a;
    a.kind = ActionKind::kStep;
    a.stage = static_cast<int16_t>(stage);
    return a;
  }

  // Each device is a replica of its own number.
  int32_t AddHop(const WeightHop& hop, bool gradient) {
    const int32_t id = static_cast<int32_t>(program_.messages.size());
    Message m;
    m.from_device = static_cast<int16_t>(hop.from);
    m.to_device = static_cast<int16_t>(hop.to);
    m.edge = -1;
    m.gradient = gradient;
    m.hop_of_stage = static_cast<int16_t>(hop.stage);
    program_.messages.push_back(m);
    producer_.push_back(HopOf(hop.stage));
    Append(hop.from, OpCode::kSend, hop.from, HopOf(hop.stage), id);
    Append(hop.to, OpCode::kReceive, hop.to, HopOf(hop.stage), id);
    return id;
  }

  void AwaitHop(int32_t id) {
    const Message& m = program_.messages[id];
    Append(m.to_device, OpCode::kWait, m.to_device, HopOf(m.hop_of_stage), id);
  }

  bool Holds(int d, int replica, int stage) const {
    const std::vector<int>& group = program_.schedule.placement.groups[replica][stage];
    return std::find(group.begin(), group.end(), d) != group.end();
  }

  // A step of a stage on a device steps every replica of it there.
  void AddSteps(int d, const Action& step) {
    const Schedule& s = program_.schedule;
    const int replicas = s.IsOneCopy(step.stage) ? 1 : s.placement.num_replicas();
    for (int r = 0; r < replicas; ++r) {
      if (Holds(d, r, step.stage)) Append(d, OpCode::kStep, r, step, -1);
    }
  }

  void Reserve();

  // A device's copies: how many so far, the offload that has not been waited for, reloads by their
  // stage, micro-batch and slice.
  struct HostCopies {
    int32_t count = 0, offload = -1;
    Action offloaded;
    std::map<std::tuple<int, int, int>, int32_t> reloads;
  };
  struct LaterReceive {
    int first_reader = 0;  // pass
    int replica = 0;
    int32_t id = -1;
  };

  Program program_;
  StageIoTable stage_io_;
  std::vector<HostCopies> host_copies_;  // [device]
  absl::optional<CollectiveWriter> collectives_;
  std::vector<int64_t> first_slot_;       // [edge]
  std::vector<int32_t> message_in_slot_;  // [edge, gradient, micro-batch, slice, piece] -> message
  std::vector<Action> producer_;          // [message]
  bool unequal_passes_ = false;
  FlowMaps flows_;
  // [stage] With unequal passes: the one after the last visited, and what is sent and not posted.
  std::vector<int> next_pass_;
  std::vector<std::deque<LaterReceive>> later_receives_;
};

// Lists of millions of instructions should not grow by doubling.
void Lowering::Reserve() {
  const Schedule& s = program_.schedule;
  int64_t messages = 0;
  // At the end: sums, steps and gathers of each copy, and their waits.
  std::vector<int64_t> at_end(s.num_devices(), 16);
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      for (int d : group) at_end[d] += 5;
    }
  }
  for (int d = 0; d < s.num_devices(); ++d) {
    int64_t instructions = at_end[d];
    for (const Action& a : s.order[d]) {
      instructions += IsHostTransfer(a.kind) ? 2 : 1;  // a wait
      const bool forward = a.kind == ActionKind::kForward;
      if (!forward && a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) {
        continue;
      }
      const StageIo& stage_io =
          stage_io_.Of(s.ReplicaOf(a.stage, a.micro_batch), a.stage, d, a.micro_batch);
      const int64_t sends = static_cast<int64_t>((forward ? stage_io.out : stage_io.in).size());
      const int64_t receives = static_cast<int64_t>((forward ? stage_io.in : stage_io.out).size());
      instructions += sends + 2 * receives;  // a receive and a wait
      messages += sends;
    }
    program_.instructions[d].reserve(instructions);
  }
  program_.messages.reserve(messages);
  producer_.reserve(messages);
}

absl::Status CheckOptions(const Schedule& s, const LoweringOptions& options) {
  if (s.weights_travel &&
      (options.sharding == Sharding::kOptimizer || options.sharding == Sharding::kGradients ||
       options.shards > 0 || options.expert_copies > 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--sharding=", ShardingName(options.sharding),
        ": weights that travel have one owner each, which has all of their state; leave it out"));
  }
  if (s.forward_only && options.sharding != Sharding::kReplicated) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--sharding=", ShardingName(options.sharding),
        ": a schedule of forwards alone has whole parameters and nothing beside them"));
  }
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      PIPELAB_RETURN_IF_ERROR(
          CheckShards(options.sharding, options.shards, static_cast<int64_t>(group.size())));
    }
  }
  if (options.norm_values < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a global norm of ", options.norm_values, " parameter values"));
  }
  for (const Tie& tie : options.ties) {
    if (tie.parameter.empty() || tie.stages.empty()) {
      return absl::InvalidArgumentError("a tie needs a parameter's name and its stages");
    }
    for (int stage : tie.stages) {
      if (stage < 0 || stage >= s.num_stages()) {
        return absl::InvalidArgumentError(absl::StrCat("parameter ", tie.parameter,
                                                       " is tied to stage ", stage, "; there are ",
                                                       s.num_stages()));
      }
    }
  }
  return absl::OkStatus();
}

// Passes are in a list's order of computes.
absl::Status AddExchanges(Program* program) {
  PIPELAB_ASSIGN_OR_RETURN(SliceExchangePlan plan, PlanSliceExchange(program->schedule));
  for (size_t d = 0; d < program->instructions.size(); ++d) {
    const std::vector<Action>& order = program->schedule.order[d];
    size_t position = 0;
    for (Instruction& i : program->instructions[d]) {
      if (i.op != OpCode::kCompute) continue;
      while (order[position] != i.action) ++position;
      i.arg = plan.of_action[d][position++];
    }
  }
  program->exchanges = std::move(plan.passes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> Lower(Schedule schedule, const LoweringOptions& given) {
  LoweringOptions options = given;
  if (options.stages.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(schedule, WithStages(std::move(schedule), *options.stages));
  }
  PIPELAB_RETURN_IF_ERROR(ValidateActions(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckOptions(schedule, options));
  absl::optional<WeightRing> ring;
  if (schedule.weights_travel) {
    options.sharding = Sharding::kFully;
    PIPELAB_ASSIGN_OR_RETURN(ring, WeightRing::Make(schedule));
  }
  PIPELAB_ASSIGN_OR_RETURN(StageIoTable stage_io, StageIoTable::Make(schedule));
  Lowering lowering(std::move(schedule), std::move(stage_io));
  PIPELAB_RETURN_IF_ERROR(lowering.PrepareCollectives(options));
  const std::vector<int32_t> done =
      VisitInGlobalOrder(lowering.schedule(), [&](int d, int32_t position) {
        if (!ring.has_value()) lowering.Visit(d, position);
      });
  PIPELAB_RETURN_IF_ERROR(CheckAllDone(lowering.schedule(), done));
  if (ring.has_value()) lowering.VisitInTurns(*ring);
  Program program = std::move(lowering).Finish();
  program.expert_copies = options.expert_copies;
  if (options.slice_exchange) PIPELAB_RETURN_IF_ERROR(AddExchanges(&program));
  PIPELAB_RETURN_IF_ERROR(GroupMessages(options.calls, &program));
  return program;
}

}  // namespace pipelab
