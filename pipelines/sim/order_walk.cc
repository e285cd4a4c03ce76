#include "pipelines/sim/order_walk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "glog/logging.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/ir/global_order.h"
#include "pipelines/sim/instruction_cost.h"

namespace pipelab {
namespace {

Instruction InstructionOf(const Action& a, int replica) {
  Instruction i;
  i.action = a;
  i.replica = static_cast<uint8_t>(replica);
  return i;
}

class Walk {
 public:
  Walk(const Program& order, const CostTable& costs,
       absl::FunctionRef<PathCost(int from, int to)> hop, const std::vector<Nanoseconds>& begin)
      : s_(order.schedule),
        calls_(order.calls),
        overlap_(costs.overlap && !costs.steady_overlap),
        steady_overlap_(costs.steady_overlap),
        launch_gap_(costs.launch_gap.value()),
        instruction_costs_(order, costs),
        cell_(s_),
        output_(cell_.size()),
        gradient_(cell_.size()),
        devices_(s_.num_devices()) {
    CHECK(CanWalkOrder(s_)) << s_.name;
    for (size_t d = 0; d < begin.size(); ++d) devices_[d].now = begin[d].value();
    for (size_t d = 0; steady_overlap_ && d < devices_.size(); ++d) {
      for (const Action& a : s_.order[d]) {
        if (a.kind == ActionKind::kForward) ++devices_[d].forwards_left;
      }
    }
    ends_.resize(s_.placement.num_replicas());
    last_gradient_.resize(ends_.size());
    for (size_t r = 0; r < ends_.size(); ++r) {
      last_gradient_[r].resize(s_.num_stages());
      for (int stage = 0; stage < s_.num_stages(); ++stage) {
        ends_[r].push_back(EndsOf(costs, hop, static_cast<int>(r), stage));
      }
    }
  }

  OrderWalk Run() {
    VisitInGlobalOrder(s_, [&](int d, int32_t position) { Visit(d, s_.order[d][position]); });
    OrderWalk walk;
    for (Device& d : devices_) {
      if (calls_ == MessageCalls::kBothNeighbours || d.sending > 0) EndCall(&d);
      walk.devices.push_back({Nanoseconds(d.now), Nanoseconds(d.last_gradient)});
    }
    walk.last_gradient = std::move(last_gradient_);
    return walk;
  }

 private:
  // One end of an edge to another device.
  struct End {
    int stage = 0;                      // at the other end
    int64_t inwards = 0, outwards = 0;  // from a message's begin to its arrival
    int64_t gather = 0;                 // of its parts, in calls
  };
  // The ends of a stage, what comes in and what goes out; what stays on the device is not among
  // them.
  struct Ends {
    std::vector<End> in, out, gradients_in, gradients_out;
  };
  struct Device {
    int64_t now = 0, last_gradient = 0;
    int64_t exchange_begin = 0;  // end of the last action
    int forwards_left = 0;
    bool any_backward = false;
    // In calls: of the last pass, and of those since the last call how long a message is on its
    // way.
    bool any_pass = false, forward = false;
    int64_t sending = 0;
  };

  Ends EndsOf(const CostTable& costs, absl::FunctionRef<PathCost(int from, int to)> hop, int r,
              int stage) const {
    const auto& groups = s_.placement.groups[r];
    const int d = groups[stage][0];
    Ends ends;
    const auto add = [&](int edge, int other, bool gradient, std::vector<End>* to) {
      const int peer = groups[other][0];
      if (peer == d) return;
      const Bytes bytes = costs.edge_bytes[edge];
      const Bytes sent(bytes.value() / costs.PartsOfMessage(bytes.value()));
      const auto time = [&](const PathCost& path) {
        return (path.TransferTime(sent) + path.latency + costs.LatencyOfEdge(edge, gradient))
            .value();
      };
      const PathCost& gather = costs.message_gather;
      const bool parts = calls_ != MessageCalls::kNone && sent != bytes;
      to->push_back({other, time(hop(peer, d)), time(hop(d, peer)),
                     parts ? (gather.latency + gather.TransferTime(bytes)).value() : 0});
    };
    for (int e : s_.stages.in_edges[stage]) {
      const StageGraph::Edge& edge = s_.stages.edges[e];
      add(e, edge.from, false, &ends.in);
      if (edge.gradient.same()) add(e, edge.from, true, &ends.gradients_out);
    }
    for (int e : s_.stages.out_edges[stage]) {
      const StageGraph::Edge& edge = s_.stages.edges[e];
      add(e, edge.to, false, &ends.out);
      if (edge.gradient.same()) add(e, edge.to, true, &ends.gradients_in);
    }
    return ends;
  }

  void Visit(int d, const Action& a) {
    if (IsHostTransfer(a.kind)) return;
    Device& device = devices_[d];
    const int replica = s_.ReplicaOf(a.stage, a.micro_batch);
    const Ends& ends = ends_[replica][a.stage];
    const bool forward = a.kind == ActionKind::kForward;
    const bool backward = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
    if (forward || backward) {
      const std::vector<End>& from = forward ? ends.in : ends.gradients_in;
      const bool call = calls_ != MessageCalls::kNone && HasCall(device, forward, !from.empty());
      Receive(from, forward ? output_ : gradient_, a.micro_batch, call || Blocks(device), &device);
      if (call) EndCall(&device);
      for (const End& end : from) device.now += end.gather;
      device.any_pass = true;
      device.forward = forward;
    }
    device.now += instruction_costs_.Of(d, InstructionOf(a, replica)).time;
    device.exchange_begin = device.now;
    if (forward) --device.forwards_left;
    if (backward) device.any_backward = true;
    if (forward) {
      output_[cell_(a.stage, a.micro_batch, 0)] = device.now;
      Send(ends.out, &device);
    } else if (backward) {
      gradient_[cell_(a.stage, a.micro_batch, 0)] = device.now;
      Send(ends.gradients_out, &device);
    }
    if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
      device.last_gradient = device.exchange_begin;
      last_gradient_[replica][a.stage] = Nanoseconds(device.exchange_begin);
    }
  }

  // Whether messages that go with the next action, or come from the last, occupy the device.
  bool Blocks(const Device& device) const {
    if (calls_ != MessageCalls::kNone) return false;
    if (steady_overlap_) return !device.any_backward || device.forwards_left == 0;
    return !overlap_;
  }

  // Whether the pass begins with a call (message_calls.h), at the least.
  bool HasCall(const Device& device, bool forward, bool receives) const {
    if (calls_ == MessageCalls::kOneNeighbour) return receives || device.sending > 0;
    return device.any_pass ? forward || !device.forward : receives;
  }

  void EndCall(Device* device) const {
    device->now = std::max(device->now, device->exchange_begin + device->sending) + launch_gap_;
    device->sending = 0;
  }

  // `posted`: not before the end of the last action.
  void Receive(const std::vector<End>& from, const std::vector<int64_t>& made, int micro_batch,
               bool posted, Device* device) const {
    for (const End& end : from) {
      int64_t arrival = made[cell_(end.stage, micro_batch, 0)] + end.inwards;
      if (posted) arrival = std::max(arrival, device->exchange_begin + end.inwards);
      device->now = std::max(device->now, arrival);
    }
  }

  // Without overlap sends occupy the device, one after the other.
  void Send(const std::vector<End>& to, Device* device) const {
    for (const End& end : to) {
      if (Blocks(*device)) device->now += end.outwards;
      if (calls_ != MessageCalls::kNone) device->sending = std::max(device->sending, end.outwards);
    }
  }

  const Schedule& s_;
  const MessageCalls calls_;
  const bool overlap_, steady_overlap_;
  const int64_t launch_gap_;
  const InstructionCostTable instruction_costs_;
  const CellIndex cell_;
  std::vector<int64_t> output_, gradient_;  // [cell] when it is there
  std::vector<Device> devices_;
  std::vector<std::vector<Ends>> ends_;  // [replica][stage]
  std::vector<std::vector<Nanoseconds>> last_gradient_;
};

// What a pass does to its device's memory: its messages come before it and leave after it.
struct PassMemory {
  int64_t received = 0, peak = 0, change = 0, sent = 0;
};

// [replica][stage][kind]
using PassMemories = std::vector<std::vector<std::array<PassMemory, kNumActionKinds>>>;

PassMemories MemoriesOf(const Program& order, const CostTable& costs) {
  const Schedule& s = order.schedule;
  const InstructionCostTable instruction_costs(order, costs);
  PassMemories memories(s.placement.num_replicas());
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    const auto& groups = s.placement.groups[r];
    memories[r].resize(s.num_stages());
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      // Counts of outputs and of gradients; what stays on the device is no message.
      int64_t in = 0, out = 0, gradients_in = 0, gradients_out = 0;
      const auto count = [&](int e, int64_t* outputs, int64_t* gradients) {
        const StageGraph::Edge& edge = s.stages.edges[e];
        if (groups[edge.from] == groups[edge.to]) return;
        *outputs += costs.edge_bytes[e].value();
        if (edge.gradient.same()) *gradients += costs.edge_bytes[e].value();
      };
      for (int e : s.stages.in_edges[stage]) count(e, &in, &gradients_out);
      for (int e : s.stages.out_edges[stage]) count(e, &out, &gradients_in);
      for (int k = 0; k < kNumActionKinds; ++k) {
        Action a;
        a.kind = static_cast<ActionKind>(k);
        a.stage = static_cast<int16_t>(stage);
        const InstructionCost cost = instruction_costs.Of(groups[stage][0], InstructionOf(a, r));
        PassMemory& memory = memories[r][stage][k];
        memory.peak = cost.peak;
        memory.change = cost.change;
        const bool forward = a.kind == ActionKind::kForward;
        if (!forward && a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) {
          continue;
        }
        memory.received = forward ? in : gradients_in;
        memory.sent = forward ? out : gradients_out;
      }
    }
  }
  return memories;
}

// Whether all gradients are of their micro-batch, and each stage but the last takes one: then its
// backward comes after the last stage's.
bool EndsInOneLoss(const StageGraph& stages) {
  for (const StageGraph::Edge& e : stages.edges) {
    if (e.gradient.late()) return false;
  }
  for (int stage = 0; stage + 1 < stages.num_stages(); ++stage) {
    const std::vector<int>& out = stages.out_edges[stage];
    if (std::none_of(out.begin(), out.end(),
                     [&](int e) { return stages.edges[e].gradient.same(); })) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool CanWalkOrder(const Schedule& s) {
  if (s.num_slices != 1 || !s.micro_batches_of_stage.empty()) return false;
  if (s.forward_only) return false;  // outputs for later micro-batches are of forwards alone
  if (!s.stages.AllGradientsAreOwn() && !EndsInOneLoss(s.stages)) return false;
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      if (group.size() != 1) return false;
    }
  }
  return true;
}

OrderWalk WalkOrder(const Program& order, const CostTable& costs,
                    absl::FunctionRef<PathCost(int from, int to)> hop,
                    const std::vector<Nanoseconds>& begin) {
  return Walk(order, costs, hop, begin).Run();
}

std::vector<Bytes> OrderPeaks(const Program& order, const CostTable& costs) {
  const Schedule& s = order.schedule;
  const PassMemories memories = MemoriesOf(order, costs);
  std::vector<Bytes> peaks;
  for (const std::vector<Action>& actions : s.order) {
    int64_t level = 0, peak = 0, offload = 0;  // that is not over
    for (const Action& a : actions) {
      const PassMemory& pass =
          memories[s.ReplicaOf(a.stage, a.micro_batch)][a.stage][static_cast<size_t>(a.kind)];
      if (IsHostTransfer(a.kind)) {
        level += std::exchange(offload, 0);
        (a.kind == ActionKind::kOffload ? offload : level) += pass.change;
        peak = std::max(peak, level);
        continue;
      }
      level += pass.received;
      peak = std::max({peak, level + pass.peak, level + pass.change, level});
      level += pass.change - pass.sent;
    }
    peaks.push_back(Bytes(peak));
  }
  return peaks;
}

}  // namespace pipelab
