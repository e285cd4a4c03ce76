// What kernels are launched on: a CUDA stream, or a list of work for the host's loops (launch.h).
//
//   Gelu(device, x, n, y);      // any kernel of functions.h; returns at once
//
// Kept free of Abseil, so that kernels compile fast.
#ifndef PIPELAB_KERNELS_CUDA_QUEUE_H_
#define PIPELAB_KERNELS_CUDA_QUEUE_H_

#include <cstdint>
#include <functional>

namespace pipelab {
namespace gpu {

class Queue {
 public:
  virtual ~Queue() = default;

  // A cudaStream_t; null where kernels are loops on the host.
  virtual void* stream() const = 0;
  // Of a queue on the host: runs `work` in its turn.
  virtual void Run(std::function<void()> work) = 0;
  // A launch came back with a CUDA error. From then on the queue has failed and takes nothing more.
  virtual void NoteLaunch(const char* kernel, int cuda_error) = 0;
  virtual bool failed() const = 0;

  // Memory for one function's partial sums: its contents live until the next function asks. Null
  // where it failed.
  virtual void* Scratch(int64_t bytes) = 0;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_QUEUE_H_
