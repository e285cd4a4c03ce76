// The calls that devices are in while a program with Program::calls is simulated: which messages
// they have posted, and what is left to do at the end.
//
//   DeviceCalls calls(program, costs, instruction_costs);
//   if (calls.Post(id, now, &leaves)) ...       // at a send or receive: both ends are there
//   calls.Received(device, id);                 // after its wait
//   calls.Sent(device)                          // messages whose arrival ends the call
//   now += calls.End(device);
#ifndef PIPELAB_PIPELINES_SIM_DEVICE_CALLS_H_
#define PIPELAB_PIPELINES_SIM_DEVICE_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/instruction_cost.h"

namespace pipelab {

class DeviceCalls {
 public:
  // Keeps references to all three.
  DeviceCalls(const Program& program, const CostTable& costs,
              const InstructionCostTable& instruction_costs)
      : program_(program),
        costs_(costs),
        instruction_costs_(instruction_costs),
        calls_(program.instructions.size()) {
    if (any()) posted_.assign(program.messages.size(), kNobody);
  }

  bool any() const { return program_.calls != MessageCalls::kNone; }

  // True for the second end that comes to the message, which then leaves at `leaves`.
  bool Post(int32_t message, int64_t now, int64_t* leaves) {
    int64_t& first = posted_[message];
    if (first == kNobody) {
      first = now;
      return false;
    }
    *leaves = std::max(first, now);
    return true;
  }

  void Send(int device, int32_t message) { calls_[device].sent.push_back(message); }
  const std::vector<int32_t>& Sent(int device) const { return calls_[device].sent; }

  // A message that came in parts is gathered at the end of the call.
  void Received(int device, int32_t message) {
    const int64_t bytes = instruction_costs_.MessageBytes(program_.messages[message]);
    if (costs_.PartsOfMessage(bytes) == 1) return;
    const PathCost& gather = costs_.message_gather;
    calls_[device].gathers += (gather.latency + gather.TransferTime(Bytes(bytes))).value();
  }

  // What the call takes once its messages are over.
  int64_t End(int device) {
    return std::exchange(calls_[device], Call()).gathers + costs_.launch_gap.value();
  }

 private:
  static constexpr int64_t kNobody = -1;

  struct Call {
    std::vector<int32_t> sent;
    int64_t gathers = 0;
  };

  const Program& program_;
  const CostTable& costs_;
  const InstructionCostTable& instruction_costs_;
  std::vector<Call> calls_;      // [device]
  std::vector<int64_t> posted_;  // [message] when its first end came to it
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_DEVICE_CALLS_H_
