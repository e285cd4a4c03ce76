// What kernels are queued on: a CUDA stream, or a list of work for the host's loops (launch.h).
//
//   Gelu(device, x, n, y);      // any kernel of functions.h; returns at once
//
// Kept free of Abseil, so that kernels compile fast.
#ifndef PIPELAB_KERNELS_CUDA_QUEUE_H_
#define PIPELAB_KERNELS_CUDA_QUEUE_H_

#include <cstdint>

namespace pipelab {
namespace gpu {

inline constexpr int kThreads = 256;  // of a block

// How a GPU is told of a kernel.
struct KernelLaunch {
  const void* function = nullptr;  // a __global__ function
  int blocks = 0;                  // of kThreads threads
  int64_t shared_bytes = 0;
  void* arguments[2] = {};  // inside of the work's
  // On the host alone: blocks and threads from the last to the first. A GPU's have no order.
  bool backwards = false;
};

// A kernel with its arguments as bytes, which can be copied, kept and compared: nothing undefined
// lies between them, as far as the compiler lets us see to it.
struct KernelWork {
  // For a GPU: says how the kernel is launched. On the host: does it, in the order of `launch`.
  using Entry = void (*)(void* arguments, KernelLaunch* launch);

  const char* name = "";  // for messages; lives for ever
  Entry entry = nullptr;
  const void* arguments = nullptr;
  int64_t bytes = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;

  // In its turn. The arguments are copied. A kernel that cannot be launched is the queue's fault:
  // from then on it takes nothing more.
  virtual void Add(const KernelWork& work) = 0;
  virtual bool failed() const = 0;

  // Memory for one function's partial sums: its contents live until the next function asks. Null
  // where it failed.
  virtual void* Scratch(int64_t bytes) = 0;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_QUEUE_H_
