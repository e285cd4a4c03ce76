// Speed of single operations in bfloat16 on a GPU by their sizes: what a cluster file's
// efficiencies (pipelines/cluster) are about. Products of n^3; causal attention of 128-wide heads;
// a kernel that reads and writes; and what a launch of the smallest kernel takes, alone and in a
// graph.
//
//   bazel run --config=cuda //kernels/cuda:operation_speed -- --json=operations.json
//
// Times are of one operation among many that are launched one after the other by a graph.
// Attention's flops are those of the scores below the diagonal. Exit status 3: no CUDA device.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_speed.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/speed_main.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(int, runs, 10, "measured runs; the median counts");

namespace pipelab {
namespace {

using gpu::Device;

// An operation in a run: as often as takes some ten milliseconds.
constexpr int kMostTimes = 32;
constexpr double kRunSeconds = 0.02;

class Table {
 public:
  explicit Table(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  const std::string& rows() const { return rows_; }

  // Measures what `work` queues once: `amount` flops or bytes.
  absl::Status Add(const std::string& what, double amount, const char* unit,
                   const std::function<void()>& work) {
    PIPELAB_ASSIGN_OR_RETURN(const double once, gpu::MedianSeconds(device_.get(), 1, work));
    const int times = std::clamp(static_cast<int>(kRunSeconds / once), 1, kMostTimes);
    PIPELAB_ASSIGN_OR_RETURN(const double all,
                             gpu::MedianSeconds(device_.get(), absl::GetFlag(FLAGS_runs), [&] {
                               for (int i = 0; i < times; ++i) work();
                             }));
    const double seconds = all / times;
    std::cout << absl::StrFormat("%-36s %10.3g %s %10.2f us %8.3f T%s/s\n", what, amount, unit,
                                 seconds * 1e6, amount / seconds * 1e-12, unit);
    absl::StrAppendFormat(&rows_, "%s\n  {\"what\": \"%s\", \"%s\": %.6g, \"us\": %.3f}",
                          rows_.empty() ? "" : ",", what, unit, amount, seconds * 1e6);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Device> device_;
  std::string rows_;
};

Tensor Numbers(Arena* arena, Shape shape) {
  const Tensor x = arena->Zeros(DataType::kBFloat16, std::move(shape), MemoryKind::kActivation);
  SetHostValues(x, gpu::EvenNumbers(x.size()));
  return x;
}

absl::Status MeasureProduct(const std::shared_ptr<Device>& device, int64_t n, Table* table) {
  Arena arena(device);
  const Tensor a = Numbers(&arena, {n, n}), b = Numbers(&arena, {n, n}),
               c = Numbers(&arena, {n, n});
  const gpu::MatmulCall call = gpu::ProductOf(a, b, c);
  const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n * n);
  return table->Add(absl::StrCat("product of ", n, "^3"), flops, "flop",
                    [&] { device->Matmul(call); });
}

absl::Status MeasureAttention(const std::shared_ptr<Device>& device, int64_t samples,
                              int64_t tokens, Table* table) {
  constexpr int64_t kHeads = 64, kHeadSize = 128, kWidth = kHeads * kHeadSize;
  Arena arena(device);
  const std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device, DataType::kBFloat16);
  const AttentionShape shape{samples, tokens, kHeads, kHeadSize, /*causal=*/true};
  const int64_t m = samples * tokens;
  const Tensor qkv = Numbers(&arena, {m, 3 * kWidth}), out = Numbers(&arena, {m, kWidth});
  const Tensor dout = Numbers(&arena, {m, kWidth}), dqkv = Numbers(&arena, {m, 3 * kWidth});
  const Tensor lse =
      arena.Zeros(DataType::kFloat32, {samples, kHeads, tokens}, MemoryKind::kActivation);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(tokens * kWidth);
  const std::string of = absl::StrCat(" of ", samples, " x ", tokens, " tokens");
  PIPELAB_RETURN_IF_ERROR(table->Add("attention" + of, flops, "flop",
                                     [&] { backend->attention().Forward(shape, qkv, out, lse); }));
  return table->Add("its gradient" + of, 2.5 * flops, "flop",
                    [&] { backend->attention().Gradient(shape, dout, qkv, out, lse, dqkv); });
}

absl::Status MeasureMemory(const std::shared_ptr<Device>& device, int64_t numbers,
                           const std::string& what, Table* table) {
  Arena arena(device);
  const Tensor x = arena.Zeros(DataType::kBFloat16, {numbers}, MemoryKind::kActivation);
  const Tensor y = arena.Zeros(DataType::kBFloat16, {numbers}, MemoryKind::kActivation);
  return table->Add(what, 4.0 * static_cast<double>(numbers), "B", [&] {
    gpu::Gelu(*device, GeluForm::kTanh, static_cast<const BFloat16*>(x.data()), numbers,
              static_cast<BFloat16*>(y.data()));
  });
}

absl::Status Measure(std::string* json) {
  gpu::CudaOptions options;
  PIPELAB_ASSIGN_OR_RETURN(const std::shared_ptr<Device> plain, gpu::MakeCudaDevice(options));
  options.graphs = true;
  PIPELAB_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, gpu::MakeCudaDevice(options));
  PIPELAB_ASSIGN_OR_RETURN(const double bandwidth,
                           gpu::CopyBandwidth(device, absl::GetFlag(FLAGS_runs)));
  std::cout << absl::StrFormat("a copy moves %.2f TB/s\n", bandwidth * 1e-12);
  Table table(device), launches(plain);
  for (const int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
    PIPELAB_RETURN_IF_ERROR(MeasureProduct(device, n, &table));
  }
  for (const int64_t numbers : {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28}) {
    PIPELAB_RETURN_IF_ERROR(MeasureMemory(device, numbers, "GELU", &table));
  }
  for (const auto& [samples, tokens] : {std::make_pair(1, 1024), {1, 2048}, {4, 2048}, {1, 8192}}) {
    PIPELAB_RETURN_IF_ERROR(MeasureAttention(device, samples, tokens, &table));
  }
  PIPELAB_RETURN_IF_ERROR(MeasureMemory(device, 8, "smallest kernel, graph", &table));
  PIPELAB_RETURN_IF_ERROR(MeasureMemory(plain, 8, "smallest kernel, launched", &launches));
  absl::StrAppendFormat(json, "{\"copy_tb_s\": %.3f, \"operations\": [%s,%s\n]}\n",
                        bandwidth * 1e-12, table.rows(), launches.rows());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::gpu::SpeedMain(argc, argv, &pipelab::Measure); }
