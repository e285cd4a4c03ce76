#include "kernels/comm/launch.h"

#include "kernels/comm/mpi.h"

namespace pipelab {

absl::StatusOr<std::unique_ptr<Transport>> JoinProcesses(const ProcessGroupOptions& options) {
  if (PlaceFromEnvironment().processes > 1) return JoinMpi(options);
  return MakeInProcessTransport({});
}

}  // namespace pipelab
