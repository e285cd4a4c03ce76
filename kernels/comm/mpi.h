// The MPI transport: devices in several processes, on one or more hosts.
//
//   // in every process that mpirun has started:
//   PIPELAB_ASSIGN_OR_RETURN(auto transport, JoinMpi(/*options=*/{}));
//   PIPELAB_ASSIGN_OR_RETURN(auto mine, transport->Connect(/*devices=*/4));
//
// Programs call JoinProcesses (launch.h), which calls this. With --config=mpi only.
#ifndef PIPELAB_KERNELS_COMM_MPI_H_
#define PIPELAB_KERNELS_COMM_MPI_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/transport.h"

namespace pipelab {

// Starts MPI in this process and joins those that were started with it. The transport's end is
// MPI's (MPI_Finalize): after an error a program leaves without it.
absl::StatusOr<std::unique_ptr<Transport>> JoinMpi(const ProcessGroupOptions& options);

// Communicators of devices that are spread over the processes in any way: of those that are in this
// process (`process_of`: [device]), ascending. `transport` is JoinMpi's.
std::vector<std::unique_ptr<Communicator>> MakeMpiCommunicators(Transport* transport,
                                                                std::vector<int> process_of);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_MPI_H_
