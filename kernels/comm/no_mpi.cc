// JoinMpi of a build without MPI.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/comm/mpi.h"
#include "tools/base/launch_place.h"

namespace pipelab {

absl::StatusOr<std::unique_ptr<Transport>> JoinMpi(const ProcessGroupOptions&) {
  return absl::FailedPreconditionError(
      absl::StrCat(PlaceFromEnvironment().processes,
                   " processes were started, and this program was built without MPI; build it with "
                   "tools/bazel build --config=mpi"));
}

}  // namespace pipelab
