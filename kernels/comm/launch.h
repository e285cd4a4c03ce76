// How this process was started: alone, or as one of several.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, JoinProcesses(options));
//
// Several: by mpirun or srun, where the program was built with --config=mpi.
#ifndef PIPELAB_KERNELS_COMM_LAUNCH_H_
#define PIPELAB_KERNELS_COMM_LAUNCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/transport.h"
#include "tools/base/launch_place.h"  // IWYU pragma: export

namespace pipelab {

// The transport of devices over all processes that were started together; alone, the in-process
// one. FailedPrecondition where there are several and this build cannot join them.
absl::StatusOr<std::unique_ptr<Transport>> JoinProcesses(const ProcessGroupOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_LAUNCH_H_
