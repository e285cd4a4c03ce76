#include "pipelines/sim/simulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kNumKinds = 6;

// What one action does to its device, for one member of the group and one slice.
struct ActionEffect {
  int64_t time = 0;
  int64_t peak = 0;    // bytes above the level while it runs
  int64_t change = 0;  // of the level, once it is over
};
using StageEffects = std::array<ActionEffect, kNumKinds>;

class EffectTable {
 public:
  EffectTable(const Schedule& s, const CostTable& costs) : num_stages_(s.num_stages()) {
    const std::vector<bool> recomputed = s.RecomputedStages();
    for (int r = 0; r < s.placement.num_replicas(); ++r) {
      for (int stage = 0; stage < num_stages_; ++stage) {
        const int64_t parts =
            static_cast<int64_t>(s.placement.groups[r][stage].size()) * s.num_slices;
        table_.push_back(Effects(s, costs, stage, recomputed[stage], parts));
      }
    }
  }
  const ActionEffect& Of(int replica, const Action& a) const {
    return table_[replica * num_stages_ + a.stage][static_cast<int>(a.kind)];
  }

 private:
  static StageEffects Effects(const Schedule& s, const CostTable& costs, int stage, bool recomputed,
                              int64_t parts) {
    const StageMemory& m = costs.stages[stage].memory;
    int64_t in = 0, out = 0;
    for (int e : s.stages.in_edges[stage]) in += costs.edge_bytes[e].value() / parts;
    for (int e : s.stages.out_edges[stage]) out += costs.edge_bytes[e].value() / parts;
    const int64_t kept = m.kept.value() / parts;
    const int64_t for_weight = m.kept_for_weight.value() / parts;
    StageEffects effects;
    const auto set = [&](ActionKind kind, Bytes peak, int64_t change) {
      Action a;
      a.kind = kind;
      a.stage = static_cast<int16_t>(stage);
      effects[static_cast<int>(kind)] = {costs.Compute(a).value() / parts, peak.value() / parts,
                                         change};
    };
    // The one place where the memory semantics of program.h become numbers. `in` of a forward is on
    // the device already (received, or handed over); a backward turns inputs and output gradients
    // into input gradients.
    set(ActionKind::kForward, recomputed ? m.forward_drop_peak : m.forward_peak,
        out + (recomputed ? 0 : kept));
    set(ActionKind::kRecompute, m.recompute_peak, kept);
    set(ActionKind::kBackward, m.backward_peak, in - (kept + in + out));
    set(ActionKind::kBackwardInput, m.backward_input_peak, in + for_weight - (kept + in + out));
    set(ActionKind::kBackwardWeight, m.backward_weight_peak, -for_weight);
    effects[static_cast<int>(ActionKind::kStep)].time = costs.stages[stage].step.value();
    return effects;
  }

  int num_stages_;
  std::vector<StageEffects> table_;  // [replica * stages + stage]
};

class Simulation {
 public:
  Simulation(const Program& program, const CostTable& costs)
      : p_(program), costs_(costs), effects_(program.schedule, costs) {}

  absl::StatusOr<Trace> Run(TraceOrigin origin) {
    const int devices = p_.schedule.num_devices();
    trace_.origin = origin;
    trace_.devices.resize(devices);
    devices_.resize(devices);
    arrival_.assign(p_.messages.size(), kUnsent);
    meetings_.resize(p_.reductions.size());
    for (size_t r = 0; r < meetings_.size(); ++r) {
      meetings_[r].missing = Participants(p_.reductions[r]);
    }
    for (int d = devices - 1; d >= 0; --d) runnable_.push_back(d);
    while (!runnable_.empty()) {
      const int d = runnable_.back();
      runnable_.pop_back();
      RunDevice(d);
    }
    return Finish();
  }

 private:
  // A message's arrival, or one of: not sent, and the device that waits for it as kUnsent - 1 -
  // device.
  static constexpr int64_t kUnsent = -1;

  struct Link {
    int to = 0;
    int64_t free_at = 0;  // when the message before is on its way
  };
  struct Device {
    size_t at = 0;  // next instruction
    int64_t now = 0;
    int64_t level = 0, peak = 0;
    std::vector<Link> links;  // few: the peers of a device
  };
  // A reduction's participants wait for the last one.
  struct Meeting {
    int missing = 0;
    int64_t last_arrival = 0, longest = 0;
    int64_t end = -1;
    std::vector<int> waiting;
  };

  static int Participants(const Reduction& reduction) {
    std::vector<int> devices;
    for (const ReductionMember& m : reduction.members) devices.push_back(m.device);
    std::sort(devices.begin(), devices.end());
    return static_cast<int>(std::unique(devices.begin(), devices.end()) - devices.begin());
  }

  int64_t MessageBytes(const Message& m) const {
    const int64_t bytes = costs_.edge_bytes[m.edge].value();
    const int64_t parts = int64_t{m.row_parts} * p_.schedule.num_slices;
    if (parts == 1) return bytes;  // nearly always; saves a division
    return bytes * (m.row_end - m.row_begin) / parts;
  }

  // Runs the device until its end or until it has to wait for another.
  void RunDevice(int d) {
    Device& device = devices_[d];
    DeviceTrace& trace = trace_.devices[d];
    const std::vector<Instruction>& list = p_.instructions[d];
    const Nanoseconds* measured =
        costs_.instruction_time.empty() ? nullptr : costs_.instruction_time[d].data();
    trace.spans.reserve(list.size());
    for (; device.at < list.size(); ++device.at) {
      const Instruction& i = list[device.at];
      const int64_t begin = device.now;
      int64_t own = measured == nullptr ? 0 : measured[device.at].value();  // without waiting
      int64_t end = begin + own;
      switch (i.op) {
        case OpCode::kCompute: {
          const ActionEffect& effect = effects_.Of(i.replica, i.action);
          if (measured == nullptr) own = effect.time;
          end = begin + own;
          device.peak = std::max(device.peak, device.level + effect.peak);
          device.level += effect.change;
          break;
        }
        case OpCode::kSend:
          Send(d, i.arg, end);
          break;
        case OpCode::kReceive:
          device.level += MessageBytes(p_.messages[i.arg]);
          break;
        case OpCode::kWait: {
          int64_t& arrival = arrival_[i.arg];
          if (arrival < 0) {
            arrival = kUnsent - 1 - d;
            return;
          }
          end = std::max(end, arrival);
          break;
        }
        case OpCode::kReduce: {
          if (measured == nullptr) own = costs_.reduce.value();
          if (!Meet(d, i.arg, begin, own)) return;
          end = meetings_[i.arg].end;
          break;
        }
        case OpCode::kStep:
          if (measured == nullptr) own = effects_.Of(i.replica, i.action).time;
          end = begin + own;
          break;
      }
      device.peak = std::max(device.peak, device.level);
      device.now = end;
      trace.spans.push_back(
          {static_cast<int32_t>(device.at), i.op, i.action, i.arg, begin, end, own, 0});
    }
  }

  void Send(int d, int32_t id, int64_t leaves) {
    const Message& m = p_.messages[id];
    const int64_t bytes = MessageBytes(m);
    Device& device = devices_[d];
    device.level -= bytes;
    trace_.devices[d].bytes_sent += Bytes(bytes);
    ++trace_.devices[d].messages_sent;
    auto link = device.links.begin();
    while (link != device.links.end() && link->to != m.to_device) ++link;
    if (link == device.links.end()) link = device.links.insert(link, Link{m.to_device, 0});
    const int64_t begin = std::max(leaves, link->free_at);
    link->free_at = begin + TransferTime(bytes);
    const int64_t waiting = arrival_[id];
    arrival_[id] = link->free_at + costs_.hop_latency.value();
    if (waiting < kUnsent) runnable_.push_back(static_cast<int>(kUnsent - 1 - waiting));
  }

  int64_t TransferTime(int64_t bytes) const {
    const double rate = costs_.bandwidth.value();
    if (rate == 0) return 0;
    return std::llround(static_cast<double>(bytes) * 1e9 / rate);
  }

  // True when all participants have come, and the end is known.
  bool Meet(int d, int32_t id, int64_t now, int64_t own) {
    Meeting& meeting = meetings_[id];
    if (meeting.end >= 0) return true;  // woken by the last one
    meeting.last_arrival = std::max(meeting.last_arrival, now);
    meeting.longest = std::max(meeting.longest, own);
    if (--meeting.missing > 0) {
      meeting.waiting.push_back(d);
      return false;
    }
    meeting.end = meeting.last_arrival + meeting.longest;
    runnable_.insert(runnable_.end(), meeting.waiting.begin(), meeting.waiting.end());
    return true;
  }

  absl::StatusOr<Trace> Finish() {
    const std::vector<Bytes> state = costs_.PeakState(p_.schedule);
    int64_t makespan = 0;
    for (int d = 0; d < p_.schedule.num_devices(); ++d) {
      const Device& device = devices_[d];
      if (device.at < p_.instructions[d].size()) {
        const Instruction& i = p_.instructions[d][device.at];
        return absl::InternalError(absl::StrCat("device ", d, ", instruction ", device.at, ": ",
                                                OpCodeName(i.op), " ", ToString(i.action),
                                                " never ends"));
      }
      makespan = std::max(makespan, device.now);
      trace_.devices[d].peak_activation = Bytes(device.peak);
      trace_.devices[d].peak_state = state[d];
    }
    trace_.makespan = Nanoseconds(makespan);
    return std::move(trace_);
  }

  const Program& p_;
  const CostTable& costs_;
  const EffectTable effects_;
  Trace trace_;
  std::vector<Device> devices_;
  std::vector<int64_t> arrival_;   // [message]
  std::vector<Meeting> meetings_;  // [reduction]
  std::vector<int> runnable_;
};

absl::Status CheckFits(const Program& p, const CostTable& costs) {
  const Schedule& s = p.schedule;
  if (static_cast<int>(costs.stages.size()) != s.num_stages()) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has ", costs.stages.size(),
                                                   " stages, the schedule ", s.num_stages()));
  }
  if (costs.edge_bytes.size() != s.stages.edges.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has ", costs.edge_bytes.size(),
                                                   " edges, the schedule ", s.stages.edges.size()));
  }
  if (costs.bandwidth < BytesPerSecond(0) || costs.hop_latency < Nanoseconds(0)) {
    return absl::InvalidArgumentError("the cost table has a negative bandwidth or latency");
  }
  if (costs.instruction_time.empty()) return absl::OkStatus();
  if (costs.instruction_time.size() != p.instructions.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost table has instruction times of ", costs.instruction_time.size(),
                     " devices, the program ", p.instructions.size()));
  }
  for (size_t d = 0; d < p.instructions.size(); ++d) {
    if (costs.instruction_time[d].size() == p.instructions[d].size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", d, ": the cost table has ", costs.instruction_time[d].size(),
        " instruction times, the program ", p.instructions[d].size(), " instructions"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Trace> Simulate(const Program& program, const CostTable& costs, TraceOrigin origin) {
  PIPELAB_RETURN_IF_ERROR(CheckFits(program, costs));
  return Simulation(program, costs).Run(origin);
}

}  // namespace pipelab
