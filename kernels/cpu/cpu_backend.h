// The CPU backend: oneDNN for every matrix product, vectorised loops for the rest, on the calling
// thread; or on some threads, which share large products and what a graph network's layers do.
//
//   Arena arena;                                     // in the device's thread
//   std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
//
// Each in-process device has its own arena, backend and thread. The first matrix product of a
// thread sets OpenMP's thread count of *that thread* to one, so that any number of devices run side
// by side. library_ns() counts the time inside oneDNN.
#ifndef PIPELAB_KERNELS_CPU_CPU_BACKEND_H_
#define PIPELAB_KERNELS_CPU_CPU_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace pipelab {

std::unique_ptr<Backend> MakeCpuBackend(Arena* arena);

// `threads`, at least 1: the calling one and helpers. The same bits for any number of them.
std::unique_ptr<Backend> MakeThreadedCpuBackend(Arena* arena, int threads);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_CPU_BACKEND_H_
