// absl::Status as Python's exceptions, with the one line that the command line prints.
//
//   ThrowIfError(status);                   // pipelab.UsageError for InvalidArgument, else .Error
//   Schedule s = ValueOrThrow(MakeSchedule("1f1b", params));
//
// pybind11 takes C++ exceptions to Python; they stay within the bindings.
#ifndef PIPELAB_PYTHON_PIPELAB_ERRORS_H_
#define PIPELAB_PYTHON_PIPELAB_ERRORS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pybind11/pybind11.h"

namespace pipelab {

// Error, and UsageError, which is a ValueError too.
void DefineErrors(pybind11::module_* module);

// With the GIL held.
void ThrowIfError(const absl::Status& status);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

}  // namespace pipelab

#endif  // PIPELAB_PYTHON_PIPELAB_ERRORS_H_
