// Executes one device's instruction list, on that device's thread.
//
//   DeviceRunner runner(program, device, std::move(plan), setup, options);
//   DeviceStep step;
//   absl::Status status = runner.Run(&step);     // one pass over the list
//
// Errors name their place ("device 2, 1F3: ..."); follow-ups of another device's error come back as
// they are. The runner does not abort anything: its owner does.
#ifndef PIPELAB_PIPELINES_RUNTIME_DEVICE_RUNNER_H_
#define PIPELAB_PIPELINES_RUNTIME_DEVICE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"
#include "models/graph/collective.h"
#include "models/layers/communicator_peers.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/collective_calls.h"
#include "pipelines/runtime/device_plan.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/runtime/host_copier.h"
#include "pipelines/runtime/span_recorder.h"

namespace pipelab {

// What one pass left on record. Times are of the steady clock.
struct DeviceStep {
  DeviceTrace trace;
  int64_t begin_ns = 0, end_ns = 0;
};

class DeviceRunner {
 public:
  // What it points to must outlive it; `peers` and `fill` may be null.
  DeviceRunner(const Program* program, int device, DevicePlan plan, Arena* arena,
               Communicator* communicator, CommunicatorPeers* peers, FillRunner* fill,
               const ExecutorOptions& options);

  absl::Status Run(DeviceStep* step);

  // For a watchdog on another thread. The index of the instruction under way, the list's length
  // when idle; and how many waits for other devices have begun and ended: odd while in one.
  int64_t position() const { return position_.load(std::memory_order_relaxed); }
  int64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  // "device 2 is in 1F3".
  std::string Whereabouts() const { return Doing("is in"); }
  // "device 2 waited 60 s for 1F3 from device 1": `doing` is what it does at its place.
  std::string Doing(absl::string_view doing) const;
  // Lets go of tensors and charges that an error left behind. Not while Run is under way.
  void Clear();

 private:
  // The place of the instruction that comes next, ExecutorOptions::first_come.
  size_t Next();
  // The place of another message that has come, or of a receive to post before; the list's length:
  // none.
  size_t Overtaking() const;
  absl::Status Execute(const Instruction& i, int32_t index);
  absl::Status Compute(const Instruction& i, const ComputePlan& compute);
  absl::Status Gather(const ComputePlan& compute, std::vector<Tensor>* inputs);
  Tensor Assemble(const InputPlan& input);
  Tensor Copy(const Tensor& rows);
  absl::Status Deliver(const ComputePlan& compute, std::vector<Tensor> outputs, bool forward);
  absl::Status Send(const Instruction& i, const SendPlan& send);
  absl::Status Receive(const Instruction& i, int32_t index);
  absl::Status Wait(int32_t index);
  void RunFill(const Instruction& i);
  // In how many parts the ranks of the group send a message.
  int64_t PartsOf(int64_t bytes) const {
    return divided_messages_ ? MessageParts(Bytes(bytes), tensor_parallel_) : 1;
  }
  absl::StatusOr<Tensor> GatherMessage(const TensorSpec& spec, const Tensor& part);
  // kOffload, kReload and kHostWait.
  absl::Status MoveToHost(const Instruction& i, int32_t index);
  // The copies of the pass that has finished.
  std::vector<HostCopy> HostCopies() const;
  absl::Status RunCollective(OpCode op, int32_t index);
  // With what comes after it.
  absl::Status Begin(const CollectivePlan& plan, CollectiveState* state);
  absl::Status End(const CollectivePlan& plan, CollectiveState* state);
  absl::Status FinishSends();
  // The communicator's Wait. It has no limit of its own: the executor sees whether a wait is one
  // for somebody who computes, and ends the run.
  absl::StatusOr<Tensor> AwaitTicket(Ticket ticket);
  // What the device has sent to its tensor-parallel group so far.
  Bytes TensorTraffic() const { return peers_ == nullptr ? Bytes(0) : peers_->traffic(); }
  absl::Status AtPlace(const Instruction& i, absl::Status status) const;

  const Program* const program_;
  const std::string name_;  // "device 2"
  const std::vector<Instruction>& instructions_;
  DevicePlan plan_;
  Arena* const arena_;
  Communicator* const communicator_;
  CommunicatorPeers* const peers_;
  FillRunner* const fill_;
  const bool trace_;
  const int tensor_parallel_;
  const bool divided_messages_;
  const int first_come_;
  SpanRecorder recorder_;

  HostCopier host_copier_;
  std::vector<char> done_;                    // [instruction], first come
  size_t at_ = 0;                             // the first that is not done
  size_t overtaking_ = 0, overtakes_to_ = 0;  // under way: a range of the list

  std::vector<Tensor> buffers_;
  std::vector<Ticket> receive_tickets_;                   // [receive]
  std::vector<std::pair<Ticket, int32_t>> send_tickets_;  // of this pass, with their instruction
  std::vector<CollectiveState> collectives_;              // [collective]
  int64_t bytes_sent_ = 0, messages_sent_ = 0, collective_bytes_ = 0;
  std::atomic<int64_t> position_, waits_{0};
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_DEVICE_RUNNER_H_
