#include "pipelines/sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/cost/state_walk.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/sim/check_costs.h"
#include "pipelines/sim/collective_timeline.h"
#include "pipelines/sim/device_calls.h"
#include "pipelines/sim/instruction_cost.h"
#include "pipelines/sim/tensor_traffic.h"
#include "pipelines/sim/transfers.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

class Simulation {
 public:
  // `totals`: SimulateTotals.
  Simulation(const Program& program, const CostTable& costs, bool totals)
      : p_(program),
        costs_(costs),
        totals_(totals),
        instruction_costs_(program, costs),
        rings_(program),
        transfers_(program, costs, SharedRings()),
        collectives_(program, costs, rings_, &transfers_),
        calls_(program, costs, instruction_costs_) {}

  absl::StatusOr<Trace> Run(TraceOrigin origin) {
    const int devices = p_.schedule.num_devices();
    PIPELAB_RETURN_IF_ERROR(CheckLengths());
    trace_.origin = origin;
    trace_.devices.resize(devices);
    devices_.resize(devices);
    arrival_.assign(p_.messages.size(), kUnsent);
    if (AnyBlock()) transfer_time_.resize(p_.messages.size());
    if (costs_.steady_overlap) FindSteadyPhases();
    const bool saves =
        std::any_of(costs_.stages.begin(), costs_.stages.end(),
                    [](const StageCost& stage) { return stage.merged_saving > Nanoseconds(0); });
    if (p_.schedule.merges_passes && saves) merged_ = FindMergedPasses(p_);
    for (int d = devices - 1; d >= 0; --d) runnable_.push_back(d);
    std::vector<Arrival> arrivals;
    while (true) {
      // Depth first: an arrival on a private link is known when the message is sent. What shared
      // links do is known only up to the time that every device has reached or waits for.
      while (!runnable_.empty()) {
        const int d = runnable_.back();
        runnable_.pop_back();
        RunDevice(d);
      }
      if (!transfers_.pending()) break;
      arrivals.clear();
      transfers_.Advance(&arrivals);
      for (const Arrival& a : arrivals) {
        if (a.ring < 0) {
          Arrive(a);
        } else {
          collectives_.Complete(a.ring, a.arrival);
          Wake();
        }
      }
    }
    return Finish();
  }

 private:
  // A message's arrival, or one of: not known, and the device that waits for it as kUnsent - 1 -
  // device.
  static constexpr int64_t kUnsent = -1;

  struct Device {
    size_t at = 0;  // next instruction
    int64_t now = 0;
    int64_t level = 0, peak = 0;
    // Without overlap: since when it only communicates.
    int64_t exchange_begin = 0;
    // For CostTable::steady_overlap: the first backward and the last forward.
    size_t steady_begin = 0, steady_end = 0;
    bool sending = false;  // whether it waits for what it sends
    // Its host link: when the last copy ends, when each ends, what the host has.
    int64_t host_free = 0, host_level = 0;
    std::vector<int64_t> copied;
  };

  // Whether messages occupy devices, and whether they do where the device is now.
  bool AnyBlock() const { return (!costs_.overlap || costs_.steady_overlap) && !calls_.any(); }
  bool Blocks(const Device& device) const {
    if (!AnyBlock()) return false;
    return device.at < device.steady_begin || device.at >= device.steady_end;
  }

  // Empty for a device that has no steady phase.
  void FindSteadyPhases() {
    for (size_t d = 0; d < devices_.size(); ++d) {
      const std::vector<Instruction>& list = p_.instructions[d];
      bool backward = false;
      for (size_t at = 0; at < list.size(); ++at) {
        if (list[at].op != OpCode::kCompute) continue;
        const ActionKind kind = list[at].action.kind;
        if (kind == ActionKind::kForward && backward) devices_[d].steady_end = at;
        if (backward || kind == ActionKind::kForward || kind == ActionKind::kRecompute) continue;
        backward = true;
        devices_[d].steady_begin = at;
      }
    }
  }

  // Runs the device until its end or until it has to wait for another.
  void RunDevice(int d) {
    Device& device = devices_[d];
    DeviceTrace& trace = trace_.devices[d];
    const std::vector<Instruction>& list = p_.instructions[d];
    const Nanoseconds* measured =
        costs_.instruction_time.empty() ? nullptr : costs_.instruction_time[d].data();
    if (!totals_) trace.spans.reserve(list.size());
    for (; device.at < list.size(); ++device.at) {
      const Instruction& i = list[device.at];
      const InstructionCost cost = instruction_costs_.Of(d, i);
      const int64_t begin = std::max(device.now, ReleaseOf(i));
      int64_t own = measured == nullptr ? 0 : measured[device.at].value();  // without waiting
      int64_t end = begin + own, rest = 0;
      switch (i.op) {
        case OpCode::kCompute:
        case OpCode::kStep:
          if (measured == nullptr) own = ComputeTime(d, i, cost.time - SavingOf(d, i));
          end = begin + own;
          break;
        case OpCode::kSend:
          if (calls_.any()) {
            calls_.Send(d, i.arg);
            Post(i.arg, end);
            break;
          }
          if (!device.sending) Send(i.arg, end);
          if (!Blocks(device)) break;
          device.sending = arrival_[i.arg] < 0;
          if (device.sending) return;
          end = arrival_[i.arg];
          own = end - begin;
          break;
        case OpCode::kReceive:
          if (calls_.any()) Post(i.arg, end);
          break;
        case OpCode::kWait:
          if (!Arrived(d, i.arg)) return;
          end = std::max(end, arrival_[i.arg]);
          if (Blocks(device)) end = std::max(end, device.exchange_begin + transfer_time_[i.arg]);
          if (calls_.any()) calls_.Received(d, i.arg);
          break;
        case OpCode::kSynchronise:
          if (!EndOfSends(d, &end)) return;
          rest = calls_.End(d);
          if (measured == nullptr) own = rest;
          end += own;
          break;
        case OpCode::kReduce:
        case OpCode::kReduceWait:
        case OpCode::kGather:
        case OpCode::kGatherWait:
        case OpCode::kNorm:
        case OpCode::kNormWait:
          end = Collective(d, i, begin, &own);
          if (end == CollectiveTimeline::kBlocked) return;
          break;
        case OpCode::kFill:
          if (measured == nullptr) own = p_.fills[i.arg].work.value();
          end = begin + own;
          break;
        case OpCode::kOffload:
        case OpCode::kReload:
          BeginCopy(d, i, end);
          break;
        case OpCode::kHostWait:
          end = std::max(end, device.copied[i.arg]);
          if (i.action.kind == ActionKind::kReload) {
            device.host_level -= instruction_costs_.HostBytes(i);
          }
          break;
        case OpCode::kRelease:
          break;
      }
      Account(cost, &device);
      device.now = end;
      if (i.op != OpCode::kSend && i.op != OpCode::kReceive && i.op != OpCode::kWait &&
          i.op != OpCode::kFill && !IsHostTransfer(i.op)) {
        device.exchange_begin = end;
      }
      if (totals_) continue;
      trace.spans.push_back({begin, end, own});
    }
  }

  // Copies of a device follow one another.
  void BeginCopy(int d, const Instruction& i, int64_t now) {
    Device& device = devices_[d];
    DeviceTrace& trace = trace_.devices[d];
    const int64_t bytes = instruction_costs_.HostBytes(i);
    const int64_t begin = std::max(now, device.host_free);
    device.host_free = begin + HostTime(bytes);
    device.copied.resize(std::max(device.copied.size(), static_cast<size_t>(i.arg) + 1));
    device.copied[i.arg] = device.host_free;
    if (i.op == OpCode::kOffload) device.host_level += bytes;
    trace.peak_host = std::max(trace.peak_host, Bytes(device.host_level));
    trace.host_bytes += Bytes(bytes);
    if (totals_) return;
    trace.host_copies.push_back(
        {{begin, device.host_free, device.host_free - begin}, static_cast<int64_t>(device.at)});
  }
  int64_t HostTime(int64_t bytes) const {
    const double rate = costs_.host_bandwidth.value();
    return rate == 0 ? 0 : std::llround(static_cast<double>(bytes) / rate * 1e9);
  }

  // When the samples of a stage's forward arrive that no other stage feeds: those of its last
  // smallest micro-batch.
  int64_t ReleaseOf(const Instruction& i) const {
    const Schedule& s = p_.schedule;
    if (costs_.releases.empty() || i.op != OpCode::kCompute ||
        i.action.kind != ActionKind::kForward || !s.stages.IsFirst(i.action.stage)) {
      return 0;
    }
    return costs_.releases[(i.action.micro_batch + 1) * s.MicroBatchSize(i.action.stage) - 1]
        .value();
  }

  int64_t SavingOf(int d, const Instruction& i) const {
    if (merged_.empty() || merged_[d][devices_[d].at] == 0) return 0;
    return costs_.stages[i.action.stage].merged_saving.value();
  }

  int64_t ComputeTime(int d, const Instruction& i, int64_t cost) const {
    const int64_t time = i.op == OpCode::kStep ? StepTime(d, i, cost) : cost;
    const double speed = costs_.device_speed.empty() ? 1 : costs_.device_speed[d];
    return speed == 1 ? time : std::llround(static_cast<double>(time) / speed);
  }

  // False: not yet, and the message knows who waits for it.
  bool Arrived(int d, int32_t message) {
    if (arrival_[message] >= 0) return true;
    arrival_[message] = kUnsent - 1 - d;
    return false;
  }

  // When the instruction is over, or kBlocked; `own` is its measured time, or becomes that without
  // waiting.
  int64_t Collective(int d, const Instruction& i, int64_t begin, int64_t* own) {
    const int64_t end = collectives_.Visit(d, i, begin, *own);
    Wake();
    if (end == CollectiveTimeline::kBlocked) return end;
    if (BeginsCollective(i.op)) {
      trace_.devices[d].collective_bytes += Bytes(collectives_.TrafficOf(i));
    } else if (costs_.instruction_time.empty()) {
      *own = std::min(end - begin, collectives_.TimeOf(i));
    }
    return end;
  }

  static void Account(const InstructionCost& cost, Device* device) {
    device->peak = std::max(device->peak, device->level + cost.peak);
    device->level += cost.change;
    device->peak = std::max(device->peak, device->level);
  }

  absl::Status CheckLengths() const {
    const Nanoseconds most = LongestTime(p_);
    PIPELAB_RETURN_IF_ERROR(CheckTimes(p_, costs_, instruction_costs_.LargestHostCopy(), most));
    PIPELAB_RETURN_IF_ERROR(transfers_.CheckTimes(instruction_costs_.LargestMessage(), most));
    return costs_.instruction_time.empty() ? collectives_.CheckTimes(most) : absl::OkStatus();
  }

  // Measured times of collectives are their own.
  absl::Span<const std::vector<int>> SharedRings() const {
    if (!costs_.instruction_time.empty()) return {};
    return rings_.Shareable();
  }

  void Wake() {
    for (int woken : collectives_.TakeWoken()) runnable_.push_back(woken);
  }

  void Send(int32_t id, int64_t leaves) {
    const Message& m = p_.messages[id];
    const int64_t bytes = instruction_costs_.SentBytes(m);
    trace_.devices[m.from_device].bytes_sent += Bytes(bytes);
    ++trace_.devices[m.from_device].messages_sent;
    const Arrival a = transfers_.Send(id, bytes, leaves);
    if (a.arrival != Arrival::kUnknown) Arrive(a);
  }

  // Posts a message of a call.
  void Post(int32_t id, int64_t now) {
    int64_t leaves = 0;
    if (calls_.Post(id, now, &leaves)) Send(id, leaves);
  }

  // False where one has not arrived: the device is woken by the next that does.
  bool EndOfSends(int d, int64_t* end) {
    bool& sending = devices_[d].sending;
    for (int32_t id : calls_.Sent(d)) {
      sending = sending || arrival_[id] < 0;
      *end = std::max(*end, arrival_[id]);
    }
    return !sending;
  }

  void Arrive(const Arrival& a) {
    const int64_t waiting = arrival_[a.message];
    arrival_[a.message] = a.arrival;
    if (waiting < kUnsent) runnable_.push_back(static_cast<int>(kUnsent - 1 - waiting));
    if (AnyBlock()) transfer_time_[a.message] = a.arrival - a.begin;
    const int sender = p_.messages[a.message].from_device;
    // On a private link the sender is here itself and does not wait.
    if (!devices_[sender].sending) return;
    if (calls_.any()) devices_[sender].sending = false;
    runnable_.push_back(sender);
  }

  // A step of parts takes its share of the whole.
  int64_t StepTime(int d, const Instruction& i, int64_t time) const {
    if (p_.sharding == Sharding::kReplicated) return time;
    return std::llround(static_cast<double>(time) *
                        StepShare(costs_, p_, {d, i.replica, i.action.stage}));
  }

  absl::StatusOr<Trace> Finish() {
    const std::vector<Bytes> state = PeakState(costs_, p_);
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
    if (totals_) return std::move(trace_);
    AddTensorTraffic(p_, costs_, instruction_costs_, &trace_);
    AddStatisticsTraffic(p_, costs_, &trace_);
    return std::move(trace_);
  }

  const Program& p_;
  const CostTable& costs_;
  const bool totals_;
  const InstructionCostTable instruction_costs_;
  const ProgramRings rings_;
  Transfers transfers_;
  CollectiveTimeline collectives_;
  DeviceCalls calls_;
  Trace trace_;
  std::vector<Device> devices_;
  std::vector<std::vector<char>> merged_;  // FindMergedPasses, where such passes save time
  std::vector<int64_t> arrival_;           // [message]
  std::vector<int64_t> transfer_time_;     // [message] from begin to arrival; where transfers block
  std::vector<int> runnable_;
};

}  // namespace

absl::StatusOr<Trace> Simulate(const Program& program, const CostTable& costs, TraceOrigin origin) {
  PIPELAB_RETURN_IF_ERROR(CheckFits(program, costs));
  return Simulation(program, costs, /*totals=*/false).Run(origin);
}

absl::StatusOr<Trace> SimulateTotals(const Program& program, const CostTable& costs) {
  PIPELAB_RETURN_IF_ERROR(CheckFits(program, costs));
  return Simulation(program, costs, /*totals=*/true).Run(TraceOrigin::kSimulated);
}

}  // namespace pipelab
