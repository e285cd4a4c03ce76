// Kernels written once for two executors: nvcc makes CUDA kernels of a .cu.cc file, and the host's
// compiler makes loops of it, which tests hold to the reference on machines without a GPU.
//
//   ForEach(queue, "Gelu", n, [=] PIPELAB_DEVICE(int64_t i) { y[i] = ...; });
//   ForEachBlock(queue, "LayerNorm", rows, 0, [=] PIPELAB_DEVICE(Block& block, int64_t row) {
//     const float sum = block.Sum(c, [&](int64_t j) { return x[row * c + j]; });
//     block.ForEach(c, [&](int64_t j) { y[row * c + j] = x[row * c + j] - sum / c; });
//   });
//
// A block is kThreads threads that run the same code; ForEach and the reductions divide their
// indices among them and meet at the end, so what comes after sees what came before. Anything
// outside them is done by every thread: it must not write. Reductions add in an order that the
// count alone fixes, which is the same in both executors; all threads get the result. ForEachWarp
// runs its function once for each warp of a block, by all of its threads (tile_product.h).
#ifndef PIPELAB_KERNELS_CUDA_LAUNCH_H_
#define PIPELAB_KERNELS_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>

#include "kernels/cuda/queue.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define PIPELAB_DEVICE __device__
#define PIPELAB_UNROLL _Pragma("unroll")  // before a loop, whose arrays are then registers
#else
#define PIPELAB_DEVICE
#define PIPELAB_UNROLL
#endif

namespace pipelab {
namespace gpu {

inline constexpr int kWarp = 32;
inline constexpr int kWarps = kThreads / kWarp;  // of a block

// What an entry of the queue takes (KernelWork).
template <class F>
struct KernelCall {
  int64_t count;
  int64_t shared_floats;
  F f;
};

template <class F>
void AddCall(Queue& queue, const char* name, KernelWork::Entry entry, int64_t count,
             int64_t shared_floats, const F& f) {
  static_assert(std::is_trivially_copyable<F>::value, "a kernel's arguments travel as bytes");
  if (count <= 0 || queue.failed()) return;
  KernelCall<F> call{count, shared_floats, f};
#if defined(__GNUC__) && !defined(__clang__)
  __builtin_clear_padding(&call);  // elsewhere equal calls may look different; no harm but speed
#endif
  queue.Add({name, entry, &call, sizeof(call)});
}

#ifdef __CUDACC__

class Block {
 public:
  __device__ explicit Block(float* shared) : shared_(shared) {}

  // As many floats as the launch asked for, from a multiple of 128 bytes on.
  __device__ float* shared() const { return shared_; }

  template <class F>
  __device__ void ForEach(int64_t n, const F& f) const {
    for (int64_t i = threadIdx.x; i < n; i += kThreads) f(i);
    __syncthreads();
  }

  template <class F>
  __device__ void ForEachWarp(const F& f) const {
    f(static_cast<int>(threadIdx.x) / kWarp);
    __syncthreads();
  }

  // The sum of what f returns: float, double or an integer.
  template <class F>
  __device__ auto Sum(int64_t n, const F& f) const {
    using T = decltype(f(int64_t{0}));
    T value = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) value += f(i);
    for (int o = kWarp / 2; o > 0; o /= 2) value += __shfl_xor_sync(0xffffffffu, value, o);
    __shared__ T of_warp[kWarps];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    T all = of_warp[0];
    for (int w = 1; w < kWarps; ++w) all += of_warp[w];
    __syncthreads();
    return all;
  }

  // Minus infinity of nothing; a NaN is passed over.
  template <class F>
  __device__ float Max(int64_t n, const F& f) const {
    float value = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) value = fmaxf(value, f(i));
    for (int o = kWarp / 2; o > 0; o /= 2) {
      value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, o));
    }
    __shared__ float of_warp[kWarps];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    float all = of_warp[0];
    for (int w = 1; w < kWarps; ++w) all = fmaxf(all, of_warp[w]);
    __syncthreads();
    return all;
  }

 private:
  float* shared_;
};

template <class F>
__global__ void __launch_bounds__(kThreads) ElementKernel(int64_t n, const F f) {
  const int64_t stride = int64_t{kThreads} * gridDim.x;
  for (int64_t i = int64_t{kThreads} * blockIdx.x + threadIdx.x; i < n; i += stride) f(i);
}

template <class F>
__global__ void __launch_bounds__(kThreads) BlockKernel(int64_t blocks, const F f) {
  extern __shared__ __align__(128) float shared[];
  Block block(shared);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    f(block, b);
    __syncthreads();  // the next one writes to the same shared memory
  }
}

inline int GridOf(int64_t blocks) {
  constexpr int64_t kMost = 1 << 20;
  return static_cast<int>(blocks < kMost ? blocks : kMost);
}

template <class F>
void LaunchElements(void* arguments, KernelLaunch* launch) {
  auto* const call = static_cast<KernelCall<F>*>(arguments);
  launch->function = reinterpret_cast<const void*>(&ElementKernel<F>);
  launch->blocks = GridOf((call->count + kThreads - 1) / kThreads);
  launch->arguments[0] = &call->count;
  launch->arguments[1] = &call->f;
}

template <class F>
void LaunchBlocks(void* arguments, KernelLaunch* launch) {
  auto* const call = static_cast<KernelCall<F>*>(arguments);
  launch->function = reinterpret_cast<const void*>(&BlockKernel<F>);
  launch->blocks = GridOf(call->count);
  launch->shared_bytes = call->shared_floats * static_cast<int64_t>(sizeof(float));
  launch->arguments[0] = &call->count;
  launch->arguments[1] = &call->f;
}

#else  // loops on the host

// From the last to the first where a test wants to see that the order is nothing to the kernel.
template <class F>
void ForEachInOrder(int64_t n, bool backwards, const F& f) {
  if (backwards) {
    for (int64_t i = n; i-- > 0;) f(i);
  } else {
    for (int64_t i = 0; i < n; ++i) f(i);
  }
}

class Block {
 public:
  Block(float* shared, bool backwards) : shared_(shared), backwards_(backwards) {}

  float* shared() const { return shared_; }

  template <class F>
  void ForEach(int64_t n, const F& f) const {
    ForEachInOrder(n, backwards_, f);
  }

  template <class F>
  void ForEachWarp(const F& f) const {
    ForEachInOrder(kWarps, backwards_, [&](int64_t warp) { f(static_cast<int>(warp)); });
  }

  template <class F>
  auto Sum(int64_t n, const F& f) const {
    using T = decltype(f(int64_t{0}));
    T of_thread[kThreads];
    for (int t = 0; t < kThreads; ++t) {
      of_thread[t] = 0;
      for (int64_t i = t; i < n; i += kThreads) of_thread[t] += f(i);
    }
    T all = 0;
    for (int w = 0; w < kThreads; w += kWarp) {
      for (int o = kWarp / 2; o > 0; o /= 2) {
        for (int l = 0; l < o; ++l) of_thread[w + l] += of_thread[w + l + o];
      }
      all = w == 0 ? of_thread[0] : all + of_thread[w];
    }
    return all;
  }

  template <class F>
  float Max(int64_t n, const F& f) const {
    float value = -__builtin_inff();
    for (int64_t i = 0; i < n; ++i) value = __builtin_fmaxf(value, f(i));
    return value;
  }

 private:
  float* shared_;
  bool backwards_;
};

// A block's shared memory, aligned as on a GPU. It ends to the byte, for AddressSanitizer.
class HostShared {
 public:
  explicit HostShared(int64_t count)
      : count_(count),
        floats_(static_cast<float*>(::operator new(count * sizeof(float), kAligned))) {}
  ~HostShared() { ::operator delete(floats_, kAligned); }
  HostShared(const HostShared&) = delete;
  HostShared& operator=(const HostShared&) = delete;

  float* floats() const { return floats_; }
  // A GPU's has anything in it.
  void Spoil() const { std::fill_n(floats_, count_, __builtin_nanf("")); }

 private:
  static constexpr std::align_val_t kAligned{128};
  const int64_t count_;
  float* const floats_;
};

template <class F>
void LaunchElements(void* arguments, KernelLaunch* launch) {
  const auto* const call = static_cast<const KernelCall<F>*>(arguments);
  ForEachInOrder(call->count, launch->backwards, call->f);
}

template <class F>
void LaunchBlocks(void* arguments, KernelLaunch* launch) {
  const auto* const call = static_cast<const KernelCall<F>*>(arguments);
  const HostShared shared(call->shared_floats);
  Block block(shared.floats(), launch->backwards);
  ForEachInOrder(call->count, launch->backwards, [&](int64_t b) {
    shared.Spoil();
    call->f(block, b);
  });
}

#endif

template <class F>
void ForEach(Queue& queue, const char* kernel, int64_t n, const F& f) {
  AddCall(queue, kernel, &LaunchElements<F>, n, 0, f);
}

// Blocks that share so many floats each.
template <class F>
void ForEachBlock(Queue& queue, const char* kernel, int64_t blocks, int64_t shared_floats,
                  const F& f) {
  AddCall(queue, kernel, &LaunchBlocks<F>, blocks, shared_floats, f);
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_LAUNCH_H_
