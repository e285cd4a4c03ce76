// How the devices of a run reach one another: threads of this process, or several processes with a
// device, or some devices, each.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto transport, JoinProcesses({}));         // launch.h
//   PIPELAB_ASSIGN_OR_RETURN(auto ranks, transport->Connect(/*devices=*/8));
//   for (auto& communicator : ranks) ...          // of this process's devices, ascending
//
// With n = devices / processes, process p has devices p n to p n + n - 1. Called by all processes
// in the same order.
#ifndef PIPELAB_KERNELS_COMM_TRANSPORT_H_
#define PIPELAB_KERNELS_COMM_TRANSPORT_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/process_group.h"

namespace pipelab {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual absl::string_view name() const = 0;  // of its communicators
  // Null: everything is in this process.
  virtual ProcessGroup* processes() const = 0;
  // Communicators of this process's devices. InvalidArgument when the processes cannot share so
  // many devices equally. They end before the transport.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(int devices) = 0;
};

// Everything in this process.
std::unique_ptr<Transport> MakeInProcessTransport(const InProcessOptions& options);

// InvalidArgument naming both numbers unless `processes` divides `devices`.
absl::Status CheckDevicesOfProcesses(int devices, int processes);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_TRANSPORT_H_
