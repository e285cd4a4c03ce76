#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/cublas_products.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/cudnn_convolutions.h"
#include "kernels/cuda/functions.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % CublasProducts::kAlignment == 0;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaOptions& options)
      : gpu_(options.gpu), precision_(options.precision) {}

  absl::Status Open() {
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), absl::StrCat("GPU ", gpu_)));
    PIPELAB_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
    PIPELAB_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&free_stream_, cudaStreamNonBlocking), "a stream"));
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin_), "an event"));
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end_), "an event"));
    PIPELAB_RETURN_IF_ERROR(MakePool());
    convolutions_ = std::make_unique<CudnnConvolutions>(precision_);
    PIPELAB_ASSIGN_OR_RETURN(products_, CublasProducts::Create(precision_));
    return absl::OkStatus();
  }

  ~CudaDevice() override {
    cudaSetDevice(gpu_);
    GiveBackBuffers();
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    if (free_stream_ != nullptr) cudaStreamSynchronize(free_stream_);
    products_.reset();
    convolutions_.reset();
    for (cudaEvent_t event : {begin_, end_}) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    for (cudaStream_t stream : {stream_, free_stream_}) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
    // What is still lent out is gone by the callers' rule that tensors end before their devices.
    if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  }

  absl::string_view name() const override { return "cuda"; }

  // Whoever asks is about to launch: its thread comes to this GPU, and the clock starts.
  void* stream() const override {
    Begin();
    return stream_;
  }
  void Run(std::function<void()>) override { LOG(FATAL) << "host work on a GPU's queue"; }

  void* Take(int64_t bytes) override {
    if (failed()) return nullptr;
    cudaSetDevice(gpu_);
    void* block = nullptr;
    if (!Ok(cudaMallocFromPoolAsync(&block, bytes, pool_, stream_),
            absl::StrCat(bytes, " bytes of GPU ", gpu_, "'s memory"))) {
      return nullptr;
    }
    CountTaken(bytes);
#ifndef NDEBUG
    Ok(cudaMemsetAsync(block, 0xFF, bytes, stream_), "a new block");
#endif
    return block;
  }

  // Blocks that other devices have worked on go through a stream of their own, which waits for all
  // of these, so that no device waits for another one's work.
  void Give(void* block, int64_t bytes, absl::Span<const Memory::Shared> others) override {
    CountTaken(-bytes);
    cudaSetDevice(gpu_);
    if (others.empty()) {
      Ok(cudaFreeAsync(block, stream_), "a block's return");
      return;
    }
    AwaitOnFreeStream(stream_);
    for (const Memory::Shared& other : others) {
      AwaitOnFreeStream(static_cast<CudaDevice*>(other.get())->stream_);
    }
    Ok(cudaFreeAsync(block, free_stream_), "a block's return");
  }

  void Clear(void* to, int64_t bytes) override {
    if (failed()) return;
    Begin();
    Ok(cudaMemsetAsync(to, 0, bytes, stream_), "clearing memory");
  }
  void Copy(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    Begin();
    Ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
  }
  void FromHost(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    cudaSetDevice(gpu_);
    if (Ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "a copy")) {
      Ok(cudaStreamSynchronize(stream_), "a copy to the GPU");
    }
  }
  void ToHost(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    cudaSetDevice(gpu_);
    if (Ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy")) {
      Ok(cudaStreamSynchronize(stream_), "a copy from the GPU");
    }
  }

  absl::Status Finish() override {
    if (failed()) return status();
    cudaSetDevice(gpu_);
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
  int64_t peak_reserved() const override {
    uint64_t bytes = 0;
    cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes);
    return static_cast<int64_t>(bytes);
  }

  void Matmul(const MatmulCall& call) override {
    if (failed() || call.m == 0 || call.n == 0) return;
    Begin();
    MatmulCall aligned = call;
    if (call.batch == 1 && call.type == MatmulCall::Type::kFloat32) {
      std::shared_ptr<void> holds[4];  // until the product is queued
      AlignInput(&aligned.a, Elements(call.transpose_a ? call.k : call.m, call.lda()), &holds[0]);
      AlignInput(&aligned.b, Elements(call.transpose_b ? call.n : call.k, call.ldb()), &holds[1]);
      AlignInput(&aligned.bias, call.n, &holds[2]);
      const void* aux = call.aux;
      if (call.then == MatmulCall::Then::kGeluGradient)
        AlignInput(&aux, call.m * call.n, &holds[3]);
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
    Begin();
    const absl::StatusOr<bool> served = convolutions_->Run(call, stream_);
    if (!served.ok()) Fail(served.status());
    return served.ok() && *served;
  }

 private:
  std::string LaunchErrorName(int error) const override {
    return cudaGetErrorString(static_cast<cudaError_t>(error));
  }

  bool Ok(cudaError_t error, absl::string_view what) {
    if (error == cudaSuccess) return true;
    Fail(CudaStatus(error, what));
    return false;
  }

  // A pool of the device's own: its blocks are reused in the order of its stream, and its peak is
  // the device's. Blocks stay with it between steps.
  absl::Status MakePool() {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = gpu_;
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaMemPoolCreate(&pool_, &properties), "a memory pool"));
    uint64_t keep = std::numeric_limits<uint64_t>::max();
    PIPELAB_RETURN_IF_ERROR(CudaStatus(
        cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "a memory pool"));
    return LetOthersIn();
  }

  // Devices of this process on other GPUs read and write these blocks, where the machine can.
  absl::Status LetOthersIn() {
    int gpus = 0;
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceCount(&gpus), "the number of GPUs"));
    for (int other = 0; other < gpus; ++other) {
      int can = 0;
      if (other == gpu_ || cudaDeviceCanAccessPeer(&can, other, gpu_) != cudaSuccess || can == 0) {
        continue;
      }
      cudaMemAccessDesc access = {};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = other;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaMemPoolSetAccess(pool_, &access, 1),
                                         absl::StrCat("access of GPU ", other)));
    }
    return absl::OkStatus();
  }

  void Begin() const {
    cudaSetDevice(gpu_);
    if (running_) return;
    running_ = true;
    cudaEventRecord(begin_, stream_);
  }

  void AwaitOnFreeStream(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    if (!Ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event")) return;
    if (Ok(cudaEventRecord(event, stream), "an event")) {
      Ok(cudaStreamWaitEvent(free_stream_, event, 0), "an event");
    }
    cudaEventDestroy(event);  // once it is over
  }

  // Floats that the rows of a factor take.
  static int64_t Elements(int64_t rows, int64_t row) { return rows * row; }

  std::shared_ptr<void> Temporary(int64_t bytes) {
    void* const block = Take(bytes);
    return std::shared_ptr<void>(block, [this, bytes](void* p) {
      if (p != nullptr) Give(p, bytes, {});
    });
  }

  // A copy at an address as the library is told that all have.
  void AlignInput(const void** from, int64_t floats, std::shared_ptr<void>* hold) {
    if (*from == nullptr || IsAligned(*from)) return;
    *hold = Temporary(4 * floats);
    if (*hold == nullptr) return;
    Copy(*from, hold->get(), 4 * floats);
    *from = hold->get();
  }

  void MatmulToCopies(MatmulCall aligned, const MatmulCall& call) {
    const int64_t bytes = 4 * call.m * call.ldc();
    const std::shared_ptr<void> c = Temporary(bytes);
    const bool writes_aux = call.then == MatmulCall::Then::kBiasGelu && !IsAligned(call.aux);
    const std::shared_ptr<void> aux = writes_aux ? Temporary(bytes) : nullptr;
    if (failed()) return;
    if (call.add) Copy(call.c, c.get(), bytes);
    aligned.c = c.get();
    if (writes_aux) aligned.aux = aux.get();
    Multiply(aligned);
    Copy(c.get(), call.c, bytes);
    if (writes_aux) Copy(aux.get(), call.aux, bytes);
  }

  // With what follows the product in kernels of its own where the library has none together.
  void Multiply(const MatmulCall& call) {
    if (failed()) return;
    absl::Status status = products_->Run(call, stream_);
    if (absl::IsUnimplemented(status) && call.then != MatmulCall::Then::kNothing &&
        call.type == MatmulCall::Type::kFloat32) {
      status = MultiplyThen(call);
    }
    if (!status.ok()) Fail(std::move(status));
  }

  absl::Status MultiplyThen(const MatmulCall& call) {
    MatmulCall plain = call;
    plain.then = MatmulCall::Then::kNothing;
    plain.bias = nullptr;
    plain.aux = nullptr;
    const bool gelu = call.then == MatmulCall::Then::kBiasGelu;
    if (gelu) plain.c = call.aux;
    PIPELAB_RETURN_IF_ERROR(products_->Run(plain, stream_));
    float* const c = static_cast<float*>(call.c);
    float* const made = static_cast<float*>(plain.c);
    const int64_t n = call.m * call.n;
    if (call.bias != nullptr) {
      AddBias(*this, static_cast<const float*>(call.bias), call.m, call.n, made);
    }
    if (gelu) Gelu(*this, made, n, c);
    if (call.then == MatmulCall::Then::kGeluGradient) {
      GeluGradient(*this, c, static_cast<const float*>(call.aux), n, c);
    }
    return absl::OkStatus();
  }

  const int gpu_;
  const Precision precision_;
  cudaStream_t stream_ = nullptr, free_stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  std::unique_ptr<CublasProducts> products_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
  mutable bool running_ = false;  // something was queued since the last Finish()
  int64_t busy_ns_ = 0;
};

}  // namespace

absl::StatusOr<int> NumGpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();  // it would come out of a later launch
    return absl::NotFoundError(absl::StrCat("no CUDA device: ", cudaGetErrorString(error)));
  }
  if (count == 0) return absl::NotFoundError("no CUDA device: the driver knows none");
  return count;
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
  auto device = std::make_shared<CudaDevice>(options);
  PIPELAB_RETURN_IF_ERROR(device->Open());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace gpu
}  // namespace pipelab
