// One stream of a GPU, or its stand-in on the host: memory, kernels, and the libraries' calls.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<gpu::Device> device, gpu::MakeCudaDevice({}));
//   std::shared_ptr<gpu::Device> device = gpu::MakeEmulatedDevice();
//   Arena arena(device);
//   std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device);
//
// The emulated device runs the same kernels as loops, and plain loops in the place of libraries. It
// does what is queued only when somebody waits for it, and its memory (that which blocks of a
// kernel share as well) starts as NaNs: what forgets to wait computes with NaNs. So everything
// above this header is tested without a GPU.
//
// With graphs, work is noted down and issued at the next wait, by a CUDA graph where the same came
// before (graph_cache.h): an action of a stage is one launch, or a few where it gets data from the
// host on its way. Memory that is given back stays with the device then, so that addresses repeat
// (block_store.h). The emulated device has graphs by the same code.
//
// Several devices may share a GPU: a stream each, side by side. A device is its thread's, but for
// what kernels/tensor/memory.h lets others do. The first fault stays: from then on nothing is
// queued, allocations give null, and Finish() says what it was.
#ifndef PIPELAB_KERNELS_CUDA_DEVICE_H_
#define PIPELAB_KERNELS_CUDA_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/convolution_kernels.h"
#include "kernels/cuda/block_store.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/work_list.h"
#include "kernels/tensor/memory.h"

namespace pipelab {
namespace gpu {

// How products of float32 numbers are computed; sums are in float32 throughout.
enum class Precision : uint8_t {
  kFloat32,  // as they are
  kTf32,     // factors rounded to 10 bits
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
  int64_t factor_bytes() const { return type == Type::kFloat32 ? 4 : 2; }
  int64_t result_bytes() const { return type == Type::kBFloat16 ? 2 : 4; }
};

// A convolution with weights as [out, height, width, in]. The pass says which of x, w and y is
// written. All three are of one type, sums are in float32: a gradient of weights in bfloat16 is
// rounded once.
struct ConvolutionCall {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::kForward;
  bool bfloat16 = false;
  void *x = nullptr, *w = nullptr, *y = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;

  int64_t x_bytes() const {
    return (bfloat16 ? 2 : 4) * shape.samples * shape.height * shape.width * shape.in_channels;
  }
  int64_t y_bytes() const {
    return (bfloat16 ? 2 : 4) * shape.samples * shape.out_height() * shape.out_width() *
           shape.out_channels;
  }
};

class Device : public Memory, public Queue, protected Worker {
 public:
  virtual absl::string_view name() const = 0;  // "cuda", "emulated"

  virtual void Matmul(const MatmulCall& call) = 0;
  // False where the library has nothing that fits the workspace and gives the same bits each time.
  virtual bool Convolve(const ConvolutionCall& call) = 0;

  void* Take(int64_t bytes) override;
  void Give(void* data, int64_t bytes, absl::Span<const Memory::Shared> others) override;
  void Clear(void* to, int64_t bytes) override;
  void Copy(const void* from, void* to, int64_t bytes) override;
  void Reduce(MemoryReduction reduction, absl::Span<const void* const> inputs,
              absl::Span<void* const> outputs, DataType type, int64_t begin,
              int64_t count) override;

  // Training takes the same step again, and gets the same memory where it can: if it does so while
  // no device works. By any thread.
  void BeginStep() { store_->BeginStep(); }

  void Add(const KernelWork& work) override;
  bool failed() const override { return failed_.load(std::memory_order_acquire); }
  void* Scratch(int64_t bytes) override { return Grow(&scratch_, bytes); }

  // Nanoseconds between the first launch after a Finish() and the end of the work, by the device's
  // clock, over all Finish() so far.
  virtual int64_t busy_ns() const { return 0; }
  // The most memory that was taken at once: in bytes asked for, and, where the driver tells, what
  // it set aside on the whole GPU.
  int64_t peak_taken() const { return peak_taken_; }
  virtual int64_t peak_reserved() const { return 0; }
  // All 0 without graphs. Between calls of the device's thread.
  GraphCounts graph_counts() const { return graphs_.counts(); }
  int64_t pieces_in_kept_graphs() const { return graphs_.pieces_kept(); }

  // Where a kernel leaves a number for the host, and the number, once the kernel is done. Not a
  // number where the device failed.
  double* result() { return static_cast<double*>(Grow(&result_, sizeof(double))); }
  double ReadResult();
  // The host's numbers for the kernels that follow, until the next call of the same function.
  const int32_t* Upload(absl::Span<const int32_t> values);
  const float* Upload(absl::Span<const float> values);

 protected:
  // When what is queued is issued.
  enum class Issuing : uint8_t {
    kAtOnce,
    kOnWait,
    kGraphs,  // on a wait, by graphs; the store keeps blocks
  };
  Device(Issuing issuing, std::shared_ptr<BlockStore> store, const GraphLimits& limits)
      : issuing_(issuing), store_(std::move(store)), graphs_(limits) {}

  // --- What kinds of devices have to say. Do() and MakeGraph() are Worker's.
  virtual absl::StatusOr<void*> NewBlock(int64_t bytes) = 0;
  // A block that only this device used, behind all that it issued.
  virtual void FreeOwn(const MemoryBlock& block) = 0;
  // Behind all that this device issued; null: that is done. From any thread.
  virtual std::unique_ptr<Fence> MakeFence() = 0;
  // Before work is issued, which a capture may follow.
  virtual void BeginWork() {}
  // Until what was issued is done.
  virtual void Wait() = 0;
  // Whether new memory is filled with NaNs, and own memory given back.
  virtual bool spoils() const { return false; }

  void Record(const Work& work);
  template <class T>
  void Record(WorkKind kind, const char* name, T arguments) {
    static_assert(std::is_trivially_copyable<T>::value, "arguments travel as bytes");
#if defined(__GNUC__) && !defined(__clang__)
    __builtin_clear_padding(&arguments);
#endif
    Record({kind, name, nullptr, &arguments, sizeof(arguments)});
  }
  // Everything that is queued. While the lock is held, nothing is queued or issued.
  void Issue() { IssueAndLock(); }
  std::unique_lock<std::mutex> IssueAndLock();

  bool has_graphs() const { return issuing_ == Issuing::kGraphs; }
  // What Grow took, and the graphs; for destructors of derived classes.
  void GiveBackBuffers();
  // Keeps the first one.
  void Fail(absl::Status why);
  absl::Status status() const;

 private:
  struct Buffer {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  void* Grow(Buffer* buffer, int64_t bytes);
  int64_t BlockBytes(int64_t bytes) const;
  void CountTaken(int64_t bytes);
  // Once all that is queued now is issued; by any thread.
  void AfterIssue(std::function<void()> call);

  const Issuing issuing_;
  const std::shared_ptr<BlockStore> store_;
  Buffer scratch_, result_, ids_, numbers_;
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> taken_{0}, peak_taken_{0};

  std::mutex work_mutex_;
  WorkList list_;
  std::thread::id list_thread_;
  GraphCache graphs_;

  std::mutex after_mutex_;
  bool pending_ = false;  // something is in the list, or being issued
  std::vector<std::function<void()>> after_;

  mutable std::mutex status_mutex_;
  absl::Status status_;
};

struct EmulatedOptions {
  int64_t memory_limit = int64_t{1} << 40;  // bytes; past them allocations fail
  bool graphs = false;
  GraphLimits graph_limits;
  // Loops in the place of cuDNN; else it refuses all convolutions, and the kernels' loops do them.
  bool convolution_library = false;
  bool backwards = false;  // kernels' blocks and threads from the last to the first
  // A test's: an error here is what launching that piece of work comes back with.
  std::function<absl::Status(absl::string_view work)> fault;
};

// On the host, for tests; see above.
std::shared_ptr<Device> MakeEmulatedDevice(const EmulatedOptions& options = {});

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_DEVICE_H_
