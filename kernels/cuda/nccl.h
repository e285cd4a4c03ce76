// The NCCL transport: a device, on a GPU of its own, in each of several processes.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto processes, ProcessGroup::Create(rank, size, rendezvous, {}));
//   PIPELAB_ASSIGN_OR_RETURN(auto own, MakeNcclCommunicator(processes.get(), size, device, limit));
//
// Processes find one another through MPI or a file (process_group.h), and an error of one ends all
// through the group: the others' NCCL communicators are aborted where they wait. Tensors are the
// device's. Sums have the order of in-process devices (sum.h), and so their bits: NCCL moves bytes,
// the device adds.
//
// How. Each ordered pair of ranks has an NCCL communicator and a stream of its own for messages,
// each pair another one for collectives: what one pair waits for never stands before another's
// bytes. A message's head (tag, type, shape) goes ahead of it, and the receiver asks for the bytes
// once it has seen that the head is right, while it is in a call of its own. Collectives do all
// their work where they are waited for. With --config=cuda.
//
// So a rank among n has 3 (n - 1) NCCL communicators and streams: 21 of 8 ranks, 189 of 64. A GPU
// has at most 32 hardware queues, which the program asks for (NumGpus in
// kernels/cuda/cuda_device.h); from 12 ranks on streams share them, and a transfer may stand behind
// one that waits for another rank. MakeNcclCommunicator says so on stderr. Nobody has run more than
// one GPU so far.
#ifndef PIPELAB_KERNELS_CUDA_NCCL_H_
#define PIPELAB_KERNELS_CUDA_NCCL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/transport.h"
#include "kernels/cuda/device.h"

namespace pipelab {

// Ranks are the first `size` processes; all processes call it, and those behind them get null.
// `device` is the process's, on a GPU that no other process uses (NCCL refuses shared ones).
absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(
    ProcessGroup* processes, int size, std::shared_ptr<gpu::Device> device, absl::Duration limit);

// The same as a transport (transport.h), of as many devices as there are processes. `processes` and
// the device outlive it.
std::unique_ptr<Transport> MakeNcclTransport(ProcessGroup* processes,
                                             std::shared_ptr<gpu::Device> device,
                                             absl::Duration limit);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_NCCL_H_
