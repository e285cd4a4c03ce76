// oneDNN's OpenMP pool stays out of the way: a device is one thread.
#ifndef PIPELAB_KERNELS_CPU_ONE_THREAD_H_
#define PIPELAB_KERNELS_CPU_ONE_THREAD_H_

#include <omp.h>

namespace pipelab {
namespace cpu {

// OpenMP's thread count belongs to the calling thread: each device thread sets its own, once,
// before it makes or runs anything of the library.
inline void UseOneThread() {
  thread_local const bool set = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(set);
}

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ONE_THREAD_H_
