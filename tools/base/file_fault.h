// The code of an error that says whose fault it is: what is wrong in a file is no mistake in the
// command that names it, so it ends with exit code 1 and not with that of wrong usage.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Plan plan, FaultOfFile(ParsePlan(text, "--plan=a.json")));
#ifndef PIPELAB_TOOLS_BASE_FILE_FAULT_H_
#define PIPELAB_TOOLS_BASE_FILE_FAULT_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pipelab {

// FailedPrecondition in the place of InvalidArgument; other codes stay.
inline absl::Status FaultOfFile(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? absl::FailedPreconditionError(status.message()) : status;
}

template <typename T>
absl::StatusOr<T> FaultOfFile(absl::StatusOr<T> read) {
  if (read.ok()) return read;
  return FaultOfFile(read.status());
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FILE_FAULT_H_
