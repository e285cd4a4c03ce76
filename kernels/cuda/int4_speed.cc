// Speed of products with 4-bit weights on a GPU beside the library's bfloat16 product of the same
// sizes, and beside the law of docs/int4.md: the larger of bytes / bandwidth and flops / peak, both
// measured in the same run.
//
//   bazel run --config=cuda //kernels/cuda:int4_speed -- --json=int4.json
//
// Launches are a graph's, back to back, of several matrices by turns, so that none is read from the
// L2 cache of the GPU. Every result is compared with that of the float32 kernel, which is another.
// Exit status: 0; 1, a result is wrong; 3, no CUDA device.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_speed.h"
#include "kernels/cuda/speed_main.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(int64_t, k, 8192, "rows of the matrix");
ABSL_FLAG(int64_t, n, 10240, "columns of the matrix");
ABSL_FLAG(int64_t, group, 128, "rows with one scale");
ABSL_FLAG(std::string, batches, "1,2,4,8,16,32,64,128", "rows of activations");
ABSL_FLAG(int, runs, 10, "measured runs; the median counts");

namespace pipelab {
namespace {

using gpu::Device;

constexpr int kMatrices = 4;   // larger together than any L2 cache
constexpr int kProducts = 32;  // of a run

struct Ceilings {
  double flops = 0, bandwidth = 0;
};

class Matrices {
 public:
  Matrices(Arena* arena, Backend* backend, const Int4Shape& shape)
      : arena_(arena), backend_(backend) {
    for (int i = 0; i < kMatrices; ++i) {
      Int4Weights w{shape, SignedInt4(), {}, {}};
      w.codes = arena->Zeros(DataType::kInt32, {shape.panels(), shape.units(), kInt4Columns},
                             MemoryKind::kParameter);
      w.scales = arena->Zeros(DataType::kBFloat16, {shape.panels(), shape.groups(), kInt4Columns},
                              MemoryKind::kParameter);
      FillOnHost<int32_t>(w.codes, [&](absl::Span<int32_t> all) {
        uint32_t bits = static_cast<uint32_t>(i) + 1;
        for (int32_t& code : all) {
          bits = bits * 1664525u + 1013904223u;
          code = static_cast<int32_t>(bits ^ bits >> 15);
        }
      });
      SetHostValues(w.scales, gpu::EvenNumbers(w.scales.size()));
      packed_.push_back(w);
      const Tensor wide =
          arena->Zeros(DataType::kBFloat16, {shape.k, shape.n}, MemoryKind::kParameter);
      SetHostValues(wide, gpu::EvenNumbers(wide.size()));
      wide_.push_back(wide);
    }
  }

  const Int4Weights& packed(int i) const { return packed_[i % kMatrices]; }

  absl::StatusOr<double> Int4Seconds(Device* device, Int4Math math, const Tensor& x,
                                     const Tensor& y) const {
    return SecondsOf(device, [&](int i) { backend_->quantized().Product(math, x, packed(i), y); });
  }
  absl::StatusOr<double> LibrarySeconds(Device* device, const Tensor& x, const Tensor& y) const {
    return SecondsOf(device,
                     [&](int i) { device->Matmul(gpu::ProductOf(x, wide_[i % kMatrices], y)); });
  }

  // ||y - y'|| / ||y'||, where y' is by float32 math.
  double Error(const Tensor& x, const Tensor& y) const {
    const Tensor want = arena_->Zeros(y.type(), y.shape(), MemoryKind::kWorkspace);
    backend_->quantized().Product(Int4Math::kFloat32, x, packed(0), want);
    SetHostValues(y, std::vector<float>(y.size(), std::nanf("")));
    backend_->quantized().Product(Int4Math::kBFloat16, x, packed(0), y);
    const std::vector<float> a = HostValues(y), b = HostValues(want);
    double error = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      error += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
    return std::sqrt(error / norm);
  }

 private:
  template <class Product>
  static absl::StatusOr<double> SecondsOf(Device* device, const Product& product) {
    PIPELAB_ASSIGN_OR_RETURN(const double all,
                             gpu::MedianSeconds(device, absl::GetFlag(FLAGS_runs), [&] {
                               for (int i = 0; i < kProducts; ++i) product(i);
                             }));
    return all / kProducts;
  }

  Arena* const arena_;
  Backend* const backend_;
  std::vector<Int4Weights> packed_;
  std::vector<Tensor> wide_;
};

// The error of a bfloat16 result, which is rounded once.
constexpr double kMostError = 0x1.0p-8;

absl::Status MeasureBatch(const std::shared_ptr<Device>& device, Arena* arena,
                          const Matrices& matrices, const Ceilings& ceilings, int64_t m,
                          std::string* json) {
  const Int4Weights& w = matrices.packed(0);
  const auto zeros = [&](int64_t columns) {
    return arena->Zeros(DataType::kBFloat16, {m, columns}, MemoryKind::kActivation);
  };
  const Tensor x = zeros(w.shape.k), y = zeros(w.shape.n);
  SetHostValues(x, gpu::EvenNumbers(x.size()));
  const double bytes = static_cast<double>(w.bytes() + x.bytes() + y.bytes());
  const double flops = 2.0 * static_cast<double>(m * w.shape.k * w.shape.n);
  const double law = std::max(bytes / ceilings.bandwidth, flops / ceilings.flops);
  PIPELAB_ASSIGN_OR_RETURN(const double own,
                           matrices.Int4Seconds(device.get(), Int4Math::kBFloat16, x, y));
  PIPELAB_ASSIGN_OR_RETURN(const double library, matrices.LibrarySeconds(device.get(), x, y));
  const double error = matrices.Error(x, y);
  std::cout << absl::StrFormat("%5d  %8.1f  %8.1f  %4.2f  %8.1f  %5.2f  %.1e\n", m, law * 1e6,
                               own * 1e6, law / own, library * 1e6, library / own, error);
  absl::StrAppendFormat(json,
                        "%s\n  {\"batch\": %d, \"law_us\": %.2f, \"int4_us\": %.2f, "
                        "\"law_over_time\": %.4f, \"library_bf16_us\": %.2f, \"speedup\": %.4f, "
                        "\"error\": %.3g}",
                        json->back() == '}' ? "," : "", m, law * 1e6, own * 1e6, law / own,
                        library * 1e6, library / own, error);
  if (error <= kMostError) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("WRONG: at batch ", m, " the result is off by ", error));
}

absl::Status Measure(std::string* json) {
  gpu::CudaOptions options;
  options.graphs = true;
  PIPELAB_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, gpu::MakeCudaDevice(options));
  const int runs = absl::GetFlag(FLAGS_runs);
  Ceilings ceilings;
  PIPELAB_ASSIGN_OR_RETURN(ceilings.flops, gpu::LargeProductFlops(device, runs));
  PIPELAB_ASSIGN_OR_RETURN(ceilings.bandwidth, gpu::CopyBandwidth(device, runs));
  std::cout << absl::StrFormat(
      "a copy moves %.2f TB/s, a product of 8192^3 in bf16 reaches %.0f TFLOP/s\n"
      "batch    law us   int4 us  of it   bf16 us  times  error\n",
      ceilings.bandwidth * 1e-12, ceilings.flops * 1e-12);
  const Int4Shape shape{absl::GetFlag(FLAGS_k), absl::GetFlag(FLAGS_n), absl::GetFlag(FLAGS_group)};
  absl::StrAppendFormat(json,
                        "{\"k\": %d, \"n\": %d, \"group\": %d, \"copy_tb_s\": %.3f, "
                        "\"matmul_peak_tflops\": %.1f, \"batches\": [",
                        shape.k, shape.n, shape.group, ceilings.bandwidth * 1e-12,
                        ceilings.flops * 1e-12);
  Arena arena(device);
  const std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device, DataType::kBFloat16);
  const Matrices matrices(&arena, backend.get(), shape);
  for (const auto batch : absl::StrSplit(absl::GetFlag(FLAGS_batches), ',')) {
    PIPELAB_RETURN_IF_ERROR(
        MeasureBatch(device, &arena, matrices, ceilings, std::stoll(std::string(batch)), json));
  }
  absl::StrAppend(json, "\n]}\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::gpu::SpeedMain(argc, argv, &pipelab::Measure); }
