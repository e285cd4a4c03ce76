// Runs a program for real: one thread a device, modules for the compute, a communicator for the
// messages.
//
//   auto ranks = MakeInProcessCommunicators(program.schedule.num_devices(), {});
//   PIPELAB_ASSIGN_OR_RETURN(auto executor, Executor::Create(&program, std::move(devices), {}));
//   for (int i = 0; i < steps; ++i) {
//     PIPELAB_ASSIGN_OR_RETURN(Trace trace, executor->RunStep());
//   }
//
// A device of the program may be a tensor-parallel group of T ranks (ExecutorOptions): rank d T + t
// runs the list of device d, and what it exchanges with the others it does with ranks of the same
// t. What the group's own ranks exchange is inside their modules.
//
// Devices may be in several processes: each has an executor of its own devices, and communicators
// that reach the others. What RunStep returns is then of its own devices (gather_trace.h).
//
// A device that fails ends the run with its own error and its place ("device 2, 1F3: ..."), not
// with a hang: the other devices are freed through Communicator::Abort and their follow-up errors
// are dropped. Where all devices of this process only wait for others, the run ends after
// `wait_limit` and names the one that has waited longest. A device that computes is progress: it
// may take as long as `action_limit`, after which its module counts as stuck, and RunStep names
// the device and the action. (The thread is still joined when the executor ends; only the module
// itself can let it go.)
#ifndef PIPELAB_PIPELINES_RUNTIME_EXECUTOR_H_
#define PIPELAB_PIPELINES_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"
#include "models/layers/communicator_peers.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/stage_module.h"
#include "tools/base/units.h"

namespace pipelab {

class FillRunner;      // fill_runner.h
class SliceExchanger;  // slice_exchanger.h

// What a device brings: its arena, its communicator, and a module for each (replica, stage) that it
// holds.
struct DeviceSetup {
  Arena* arena = nullptr;
  std::unique_ptr<Communicator> communicator;
  // [replica][stage]; null where the device does not hold the stage.
  std::vector<std::vector<StageModule*>> modules;
  // The group that the modules compute with; null: none. Gathers messages, and knows the bytes that
  // it sends.
  CommunicatorPeers* peers = nullptr;
  // The groups whose rows its modules normalise together. What they send counts as collectives.
  std::vector<CommunicatorPeers*> copies = {};
  // Those whose other tokens its modules attend to, or that have other experts. What they send
  // counts as the group's.
  std::vector<CommunicatorPeers*> context = {};
  // With which its modules exchange attention between slices; null: they do not. What it sends
  // counts as the group's. It is freed with the communicator.
  SliceExchanger* exchange = nullptr;
  // Other jobs for the program's fills; null: none.
  FillRunner* fill = nullptr;
};

struct ExecutorOptions {
  // How long the devices may wait for others while none of them computes. Devices of other
  // processes cannot be seen computing: there it must exceed their longest action.
  absl::Duration wait_limit = absl::Seconds(60);
  absl::Duration action_limit = absl::Hours(1);  // that one action of a module may take
  bool trace = true;                             // false: only makespan and totals, no spans
  int tensor_parallel = 1;  // T: `devices` of Create, and of a trace, are ranks
  // The ranks of a group have the same tensors: each sends its part of a message, and those that
  // receive it gather the whole (models/graph/collective.h). Needs peers.
  bool divided_messages = false;
  // At which copies to the host and back go at the most, of each device; 0: as fast as they can.
  BytesPerSecond host_bandwidth{0};
  // `devices` of Create are some of the ranks, ascending; the others are in other processes.
  bool others_elsewhere = false;
  // First come, first served: a device whose next message has not come goes on with what another
  // one brings (from a wait to the next wait or receive), of so many messages ahead. From each peer
  // it takes them in order. 0: in the list's order. So a step is that of another program, whose
  // lists are in the order of the trace's spans (DeviceTrace::order); for lists without
  // collectives, of which members must have one order.
  int first_come = 0;
};

class Executor {
 public:
  // `program`, arenas and modules must outlive the executor. Fails when a module is missing.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Program* program,
                                                          std::vector<DeviceSetup> devices,
                                                          const ExecutorOptions& options);
  virtual ~Executor() = default;

  // One pass over the program on all devices. After an error the executor is spent.
  virtual absl::StatusOr<Trace> RunStep() = 0;
  // When the last step began on the first of the devices, on the steady clock [ns].
  virtual int64_t step_begin_ns() const = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_EXECUTOR_H_
