// The reference backend: kernels/reference/functions.h behind the Backend interface. Each call
// widens its float32 inputs to double, computes there and rounds once at the end. Slow; for tests.
//
//   Arena arena;
//   std::unique_ptr<Backend> backend = MakeReferenceBackend(&arena);
//
// Charges the same attention workspace as every backend.
#ifndef PIPELAB_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
#define PIPELAB_KERNELS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace pipelab {

std::unique_ptr<Backend> MakeReferenceBackend(Arena* arena);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
