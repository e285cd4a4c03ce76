// One stream of a GPU, or its stand-in on the host: memory, kernels, and the libraries' calls.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<gpu::Device> device, gpu::MakeCudaDevice({}));
//   std::shared_ptr<gpu::Device> device = gpu::MakeEmulatedDevice();
//   Arena arena(device);
//   std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device);
//
// The emulated device runs the same kernels as loops, and plain loops in the place of libraries. It
// does what is queued only when somebody waits for it, and its memory starts as NaNs: what forgets
// to wait computes with NaNs. So everything above this header is tested without a GPU.
//
// Several devices may share a GPU: a stream each, side by side. A device is its thread's, but for
// what kernels/tensor/memory.h lets others do. The first fault stays: from then on nothing is
// queued, allocations give null, and Finish() says what it was.
#ifndef PIPELAB_KERNELS_CUDA_DEVICE_H_
#define PIPELAB_KERNELS_CUDA_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/convolution_kernels.h"
#include "kernels/cuda/queue.h"
#include "kernels/tensor/memory.h"

namespace pipelab {
namespace gpu {

// How products of float32 numbers are computed; sums are in float32 throughout.
enum class Precision : uint8_t {
  kFloat32,   // as they are
  kTf32,      // factors rounded to 10 bits
  kBFloat16,  // factors rounded to 7 bits: mixed precision, whose weights and activations stay
              // float32
};

// Row-major: c = a b, or c += a b. Transposed factors are stored as [k, m] and [n, k].
struct MatmulCall {
  enum class Type : uint8_t {
    kFloat32,
    kBFloat16,        // a, b, c, aux and the bias
    kBFloat16Factors  // a and b; c is float32: sums over micro-batches
  };
  enum class Then : uint8_t {
    kNothing,
    kBias,          // + bias[n]
    kBiasGelu,      // aux = a b + bias, c = gelu(aux); the bias may be null
    kGeluGradient,  // c = (a b) gelu'(aux)
  };
  Type type = Type::kFloat32;
  Then then = Then::kNothing;
  bool transpose_a = false, transpose_b = false, add = false;
  int64_t m = 0, n = 0, k = 0;
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void *c = nullptr, *aux = nullptr;
  // So many products, each so many elements after the one before it; rows this far apart (0: as
  // wide as they are).
  int64_t batch = 1, step_a = 0, step_b = 0, step_c = 0;
  int64_t row_a = 0, row_b = 0, row_c = 0;
  double scale = 1;

  int64_t lda() const { return row_a > 0 ? row_a : transpose_a ? m : k; }
  int64_t ldb() const { return row_b > 0 ? row_b : transpose_b ? k : n; }
  int64_t ldc() const { return row_c > 0 ? row_c : n; }
};

// A convolution with weights as [out, height, width, in]. The pass says which of x, w and y is
// written.
struct ConvolutionCall {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::kForward;
  float *x = nullptr, *w = nullptr, *y = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

class Device : public Memory, public Queue {
 public:
  virtual absl::string_view name() const = 0;  // "cuda", "emulated"

  virtual void Matmul(const MatmulCall& call) = 0;
  // False where the library has nothing that fits the workspace and gives the same bits each time.
  virtual bool Convolve(const ConvolutionCall& call) = 0;

  // Nanoseconds between the first launch after a Finish() and the end of the work, by the device's
  // clock, over all Finish() so far.
  virtual int64_t busy_ns() const { return 0; }
  // The most memory that was taken at once: in bytes asked for, and, where the driver tells, what
  // it set aside on the whole GPU.
  int64_t peak_taken() const { return peak_taken_; }
  virtual int64_t peak_reserved() const { return 0; }

  bool failed() const override { return failed_.load(std::memory_order_acquire); }
  void NoteLaunch(const char* kernel, int cuda_error) override;
  void* Scratch(int64_t bytes) override { return Grow(&scratch_, bytes); }
  void Reduce(MemoryReduction reduction, absl::Span<const void* const> inputs,
              absl::Span<void* const> outputs, DataType type, int64_t begin,
              int64_t count) override;

  // Where a kernel leaves a number for the host, and the number, once the kernel is done. Not a
  // number where the device failed.
  double* result() { return static_cast<double*>(Grow(&result_, sizeof(double))); }
  double ReadResult();
  // The host's numbers for the kernels that follow, until the next call of the same function.
  const int32_t* Upload(absl::Span<const int32_t> values);
  const float* Upload(absl::Span<const float> values);

 protected:
  // What Grow took; for destructors of derived classes.
  void GiveBackBuffers();
  // Keeps the first one.
  void Fail(absl::Status why);
  absl::Status status() const;
  void CountTaken(int64_t bytes);
  virtual std::string LaunchErrorName(int cuda_error) const = 0;

 private:
  struct Buffer {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  void* Grow(Buffer* buffer, int64_t bytes);

  Buffer scratch_, result_, ids_, numbers_;
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> taken_{0}, peak_taken_{0};
  mutable std::mutex mutex_;
  absl::Status status_;
};

// On the host, for tests; see above. Past `memory_limit` bytes allocations fail.
std::shared_ptr<Device> MakeEmulatedDevice(int64_t memory_limit = int64_t{1} << 40);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_DEVICE_H_
