#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/cublas_products.h"
#include "kernels/cuda/cuda_blocks.h"
#include "kernels/cuda/cuda_graph.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/cudnn_convolutions.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % CublasProducts::kAlignment == 0;
}

// Elements from the first one of a matrix to its last.
int64_t Extent(int64_t rows, int64_t columns, int64_t row) { return (rows - 1) * row + columns; }

// Kernels in the middle of what is being launched.
class AtOnce final : public Queue {
 public:
  explicit AtOnce(cudaStream_t stream) : stream_(stream) {}
  void Add(const KernelWork& work) override {
    if (!status_.ok()) return;
    status_ = LaunchWork(
        {WorkKind::kKernel, work.name, work.entry, const_cast<void*>(work.arguments), work.bytes},
        stream_);
  }
  bool failed() const override { return !status_.ok(); }
  void* Scratch(int64_t) override { return nullptr; }
  const absl::Status& status() const { return status_; }

 private:
  const cudaStream_t stream_;
  absl::Status status_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaOptions& options, std::shared_ptr<CudaBlocks> blocks)
      : Device(options.graphs ? Issuing::kGraphs : Issuing::kAtOnce, blocks, options.graph_limits),
        gpu_(options.gpu),
        precision_(options.precision),
        blocks_(std::move(blocks)) {}

  absl::Status Open() {
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), absl::StrCat("GPU ", gpu_)));
    PIPELAB_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin_), "an event"));
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end_), "an event"));
    convolutions_ = std::make_unique<CudnnConvolutions>(precision_);
    PIPELAB_ASSIGN_OR_RETURN(products_, CublasProducts::Create(precision_));
    return absl::OkStatus();
  }

  ~CudaDevice() override {
    cudaSetDevice(gpu_);
    GiveBackBuffers();
    products_.reset();
    convolutions_.reset();
    for (cudaEvent_t event : {begin_, end_}) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::string_view name() const override { return "cuda"; }

  void FromHost(const void* from, void* to, int64_t bytes) override {
    CopyNow(from, to, bytes, cudaMemcpyHostToDevice, "a copy to the GPU");
  }
  void ToHost(const void* from, void* to, int64_t bytes) override {
    CopyNow(from, to, bytes, cudaMemcpyDeviceToHost, "a copy from the GPU");
  }

  absl::Status Finish() override {
    cudaSetDevice(gpu_);
    Issue();
    if (failed()) return status();
    if (running_) Ok(cudaEventRecord(end_, stream_), "an event");
    if (Ok(cudaStreamSynchronize(stream_), "work on the GPU") && running_) {
      float milliseconds = 0;
      if (Ok(cudaEventElapsedTime(&milliseconds, begin_, end_), "an event")) {
        busy_ns_ += static_cast<int64_t>(double{milliseconds} * 1e6);
      }
    }
    running_ = false;
    return status();
  }

  int64_t busy_ns() const override { return busy_ns_; }
  int64_t peak_reserved() const override { return blocks_->peak_reserved(); }

  void Matmul(const MatmulCall& call) override {
    if (failed() || call.m == 0 || call.n == 0) return;
    cudaSetDevice(gpu_);
    MatmulCall aligned = call;
    if (call.batch == 1) {
      std::shared_ptr<void> holds[4];  // until the product is queued
      const int64_t factor = call.factor_bytes(), result = call.result_bytes();
      AlignInput(&aligned.a,
                 factor * (call.transpose_a ? Extent(call.k, call.m, call.lda())
                                            : Extent(call.m, call.k, call.lda())),
                 &holds[0]);
      AlignInput(&aligned.b,
                 factor * (call.transpose_b ? Extent(call.n, call.k, call.ldb())
                                            : Extent(call.k, call.n, call.ldb())),
                 &holds[1]);
      AlignInput(&aligned.bias, result * call.n, &holds[2]);
      const void* aux = call.aux;
      if (call.then == MatmulCall::Then::kGeluGradient)
        AlignInput(&aux, result * call.m * call.n, &holds[3]);
      aligned.aux = const_cast<void*>(aux);
      if (!IsAligned(call.c) || !IsAligned(aligned.aux)) {
        MatmulToCopies(aligned, call);
        return;
      }
      Multiply(aligned);
      return;
    }
    Multiply(aligned);
  }

  bool Convolve(const ConvolutionCall& call) override {
    if (failed()) return false;
    cudaSetDevice(gpu_);
    ConvolutionCall aligned = call;
    std::shared_ptr<void> holds[2];  // until the convolution is queued
    const bool writes_x = call.pass == ConvolutionPass::kInputGradient;
    const bool writes_y = call.pass == ConvolutionPass::kForward;
    Align(&aligned.x, call.x_bytes(), writes_x, &holds[0]);
    Align(&aligned.y, call.y_bytes(), writes_y, &holds[1]);
    if (!ConvolveAligned(aligned)) return false;
    if (writes_x && aligned.x != call.x) Copy(aligned.x, call.x, call.x_bytes());
    if (writes_y && aligned.y != call.y) Copy(aligned.y, call.y, call.y_bytes());
    return true;
  }

 private:
  bool Ok(cudaError_t error, absl::string_view what) {
    if (error == cudaSuccess) return true;
    Fail(CudaStatus(error, what));
    return false;
  }

  // Whether the library serves shows when it first runs.
  bool ConvolveAligned(const ConvolutionCall& call) {
    if (failed()) return false;
    if (has_graphs() && convolutions_->HasRun(call)) {
      Record(WorkKind::kConvolution, "a convolution", call);
      return true;
    }
    const auto lock = IssueAndLock();
    BeginWork();
    const absl::StatusOr<bool> served = convolutions_->Run(call, stream_);
    if (!served.ok()) Fail(served.status());
    return served.ok() && *served;
  }

  // --- Of Device.
  absl::StatusOr<void*> NewBlock(int64_t bytes) override {
    cudaSetDevice(gpu_);
    return blocks_->New(bytes, stream_);
  }
  void FreeOwn(const MemoryBlock& block) override {
    cudaSetDevice(gpu_);
    absl::Status freed = blocks_->FreeInOrder(block, stream_);
    if (!freed.ok()) Fail(std::move(freed));
  }
  std::unique_ptr<Fence> MakeFence() override {
    cudaSetDevice(gpu_);
    std::unique_ptr<Fence> fence = CudaFence::Record(stream_);
    if (fence == nullptr) Fail(absl::InternalError("an event on the GPU's stream"));
    return fence;
  }
  void BeginWork() override {
    cudaSetDevice(gpu_);
    if (running_) return;
    running_ = true;
    cudaEventRecord(begin_, stream_);
  }
  void Wait() override {
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  }
#ifndef NDEBUG
  bool spoils() const override { return true; }
#endif

  absl::Status Do(const Work& work) override {
    switch (work.kind) {
      case WorkKind::kProduct:
        return LaunchProduct(*static_cast<const MatmulCall*>(work.arguments));
      case WorkKind::kConvolution: {
        const auto& call = *static_cast<const ConvolutionCall*>(work.arguments);
        PIPELAB_ASSIGN_OR_RETURN(const bool served, convolutions_->Run(call, stream_));
        return served ? absl::OkStatus()
                      : absl::InternalError("cuDNN refuses a convolution that it has run before");
      }
      default:
        return LaunchWork(work, stream_);
    }
  }
  std::unique_ptr<Graph> MakeGraph(const WorkList& list) override {
    return CaptureGraph(stream_, list, [this](const Work& work) { return Do(work); });
  }

  void CopyNow(const void* from, void* to, int64_t bytes, cudaMemcpyKind kind,
               absl::string_view what) {
    if (failed()) return;
    cudaSetDevice(gpu_);
    const auto lock = IssueAndLock();
    if (Ok(cudaMemcpyAsync(to, from, bytes, kind, stream_), what)) {
      Ok(cudaStreamSynchronize(stream_), what);
    }
  }

  std::shared_ptr<void> Temporary(int64_t bytes) {
    void* const block = Take(bytes);
    return std::shared_ptr<void>(block, [this, bytes](void* p) {
      if (p != nullptr) Give(p, bytes, {});
    });
  }

  // A copy at an address as the library is told that all have.
  void AlignInput(const void** from, int64_t bytes, std::shared_ptr<void>* hold) {
    if (*from == nullptr || IsAligned(*from)) return;
    *hold = Temporary(bytes);
    if (*hold == nullptr) return;
    Copy(*from, hold->get(), bytes);
    *from = hold->get();
  }

  // The same for what a convolution reads; memory for what it writes.
  void Align(void** data, int64_t bytes, bool written, std::shared_ptr<void>* hold) {
    if (IsAligned(*data)) return;
    *hold = Temporary(bytes);
    if (*hold == nullptr) return;
    if (!written) Copy(*data, hold->get(), bytes);
    *data = hold->get();
  }

  void MatmulToCopies(MatmulCall aligned, const MatmulCall& call) {
    const int64_t bytes = call.result_bytes() * Extent(call.m, call.n, call.ldc());
    const std::shared_ptr<void> c = Temporary(bytes);
    const bool writes_aux = call.then == MatmulCall::Then::kBiasGelu && !IsAligned(call.aux);
    const std::shared_ptr<void> aux = writes_aux ? Temporary(bytes) : nullptr;
    if (failed()) return;
    if (call.add || call.ldc() > call.n) Copy(call.c, c.get(), bytes);
    aligned.c = c.get();
    if (writes_aux) aligned.aux = aux.get();
    Multiply(aligned);
    Copy(c.get(), call.c, bytes);
    if (writes_aux) Copy(aux.get(), call.aux, bytes);
  }

  void Multiply(const MatmulCall& call) {
    if (!failed()) Record(WorkKind::kProduct, "a product", call);
  }

  // With what follows the product in kernels of its own where the library has none together.
  absl::Status LaunchProduct(const MatmulCall& call) {
    absl::Status status = products_->Run(call, stream_);
    if (absl::IsUnimplemented(status) && call.then != MatmulCall::Then::kNothing) {
      status = call.result_bytes() == 2 ? MultiplyThen<BFloat16>(call) : MultiplyThen<float>(call);
    }
    return status;
  }

  // T: what the result is stored as. The bias is there before the product, which is added to it: so
  // their sum is rounded once.
  template <class T>
  absl::Status MultiplyThen(const MatmulCall& call) {
    MatmulCall plain = call;
    plain.then = MatmulCall::Then::kNothing;
    plain.bias = nullptr;
    plain.aux = nullptr;
    const bool gelu = call.then == MatmulCall::Then::kBiasGelu;
    if (gelu) plain.c = call.aux;
    T* const c = static_cast<T*>(call.c);
    T* const made = static_cast<T*>(plain.c);
    const int64_t n = call.m * call.n;
    AtOnce queue(stream_);
    if (call.bias != nullptr) {
      CopyColumns(queue, static_cast<const T*>(call.bias), 0, call.m, call.n, made, plain.ldc());
      plain.add = true;
    }
    PIPELAB_RETURN_IF_ERROR(products_->Run(plain, stream_));
    if (gelu) Gelu(queue, GeluForm::kTanh, made, n, c);
    if (call.then == MatmulCall::Then::kGeluGradient) {
      GeluGradient(queue, GeluForm::kTanh, c, static_cast<const T*>(call.aux), n, c);
    }
    return queue.status();
  }

  const int gpu_;
  const Precision precision_;
  const std::shared_ptr<CudaBlocks> blocks_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::unique_ptr<CublasProducts> products_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
  bool running_ = false;  // something was queued since the last Finish()
  int64_t busy_ns_ = 0;
};

}  // namespace

absl::StatusOr<int> NumGpus() {
  // CUDA reads it once, when a GPU is first used.
  static const int asked = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  (void)asked;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();  // it would come out of a later launch
    return absl::NotFoundError(absl::StrCat("no CUDA device: ", cudaGetErrorString(error)));
  }
  if (count == 0) return absl::NotFoundError("no CUDA device: the driver knows none");
  return count;
}

absl::Status CheckPeerAccess(absl::Span<const int> gpus) {
  for (const int from : gpus) {
    for (const int to : gpus) {
      if (from == to) continue;
      int can = 0;
      PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaDeviceCanAccessPeer(&can, from, to),
                                         absl::StrCat("whether GPU ", from, " reaches GPU ", to)));
      if (can != 0) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("GPU ", from, " cannot reach the memory of GPU ", to,
                       " (no peer access), which devices of one process need: start one process "
                       "per GPU (mpirun -n ",
                       gpus.size(), "), or use one GPU (CUDA_VISIBLE_DEVICES=", to, ")"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GpuDescription> DescribeGpu(int gpu) {
  PIPELAB_ASSIGN_OR_RETURN(const int count, NumGpus());
  if (gpu < 0 || gpu >= count) {
    return absl::NotFoundError(absl::StrCat("no CUDA device ", gpu, " of ", count));
  }
  cudaDeviceProp properties;
  PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, gpu), "the GPU"));
  GpuDescription description;
  description.name = properties.name;
  description.capability = 10 * properties.major + properties.minor;
  description.multiprocessors = properties.multiProcessorCount;
  description.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  cudaDriverGetVersion(&description.driver);
  cudaRuntimeGetVersion(&description.runtime);
  return description;
}

absl::StatusOr<std::shared_ptr<Device>> MakeCudaDevice(const CudaOptions& options) {
  PIPELAB_RETURN_IF_ERROR(DescribeGpu(options.gpu).status());
  PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<CudaBlocks> blocks,
                           CudaBlocks::Create(options.gpu, /*keeps=*/options.graphs));
  auto device = std::make_shared<CudaDevice>(options, std::move(blocks));
  PIPELAB_RETURN_IF_ERROR(device->Open());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace gpu
}  // namespace pipelab
