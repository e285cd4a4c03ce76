// Speed of a 52B-shaped GPT block in bfloat16 on a GPU, forward and backward, as a share of what
// the largest product reaches in the same run: with the Backend's attention, which training has,
// and with attention as batched products of the library (bf16_block.h).
//
//   bazel run -c opt --config=cuda //kernels/cuda:layer_speed -- --json=layers.json
//
// Exit status 3: no CUDA device.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/bf16_block.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, json, "", "write the results here too");
ABSL_FLAG(int, hidden, 8192, "width");
ABSL_FLAG(int, heads, 64, "attention heads");
ABSL_FLAG(std::string, tokens, "1024,2048", "lengths of sequences");
ABSL_FLAG(std::string, samples, "1,2,4", "samples of a micro-batch");
ABSL_FLAG(int, runs, 10, "measured runs; the median counts");

namespace pipelab {
namespace {

using gpu::BlockAttention;
using gpu::BlockSize;
using gpu::Device;

// Median seconds by the device's clock, after two runs that are not counted.
template <class Work>
absl::StatusOr<double> Seconds(Device* device, const Work& work) {
  std::vector<double> seconds;
  for (int i = 0; i < absl::GetFlag(FLAGS_runs) + 2; ++i) {
    PIPELAB_RETURN_IF_ERROR(device->Finish());
    const int64_t before = device->busy_ns();
    work();
    PIPELAB_RETURN_IF_ERROR(device->Finish());
    if (i >= 2) seconds.push_back(static_cast<double>(device->busy_ns() - before) * 1e-9);
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

absl::StatusOr<double> PeakFlops(Device* device, const std::shared_ptr<Device>& shared) {
  constexpr int64_t kSize = 8192;
  Arena arena(shared);
  const auto half = [&] {
    return arena.Zeros(DataType::kBFloat16, {kSize, kSize}, MemoryKind::kWorkspace);
  };
  // Zeros draw less power than numbers do, so a peak of zeros is out of reach: some of both.
  const Tensor a = half(), b = half(), c = half();
  std::vector<float> values(kSize * kSize);
  uint32_t bits = 1;
  for (float& v : values) {
    bits = bits * 1664525u + 1013904223u;
    v = static_cast<float>(bits >> 8) * 0x1.0p-24f - 0.5f;
  }
  for (const Tensor& t : {a, b}) SetHostValues(t, values);
  gpu::MatmulCall call;
  call.type = gpu::MatmulCall::Type::kBFloat16;
  call.m = call.n = call.k = kSize;
  call.a = a.data();
  call.b = b.data();
  call.c = c.data();
  PIPELAB_ASSIGN_OR_RETURN(const double seconds, Seconds(device, [&] { device->Matmul(call); }));
  return 2.0 * kSize * kSize * kSize / seconds;
}

std::vector<int64_t> Numbers(const std::string& list) {
  std::vector<int64_t> numbers;
  for (const auto part : absl::StrSplit(list, ','))
    numbers.push_back(std::stoll(std::string(part)));
  return numbers;
}

// One line of the table.
absl::Status MeasureBlock(const std::shared_ptr<Device>& device, double peak, int64_t tokens,
                          int64_t samples, BlockAttention attention, std::string* json) {
  BlockSize size;
  size.samples = samples;
  size.tokens = tokens;
  size.hidden = absl::GetFlag(FLAGS_hidden);
  size.heads = absl::GetFlag(FLAGS_heads);
  gpu::Bf16Block block(size, attention, device);
  PIPELAB_ASSIGN_OR_RETURN(const double forward, Seconds(device.get(), [&] { block.Forward(); }));
  PIPELAB_ASSIGN_OR_RETURN(const double backward, Seconds(device.get(), [&] { block.Backward(); }));
  const double forward_share = size.flops() / forward / peak;
  const double backward_share = 2 * size.flops() / backward / peak;
  const char* const name = attention == BlockAttention::kBackend ? "backend" : "products";
  std::cout << absl::StrFormat("%6d  %7d  %9s  %10.3f  %4.0f%%  %11.3f  %4.0f%%\n", tokens, samples,
                               name, forward * 1e3, 100 * forward_share, backward * 1e3,
                               100 * backward_share);
  absl::StrAppendFormat(
      json,
      "\n  {\"tokens\": %d, \"samples\": %d, \"attention\": \"%s\", \"forward_ms\": %.4f, "
      "\"forward_share\": %.4f, \"backward_ms\": %.4f, \"backward_share\": %.4f}",
      tokens, samples, name, forward * 1e3, forward_share, backward * 1e3, backward_share);
  return absl::OkStatus();
}

absl::Status Measure(std::string* json) {
  PIPELAB_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, gpu::MakeCudaDevice({}));
  PIPELAB_ASSIGN_OR_RETURN(const gpu::GpuDescription about, gpu::DescribeGpu(0));
  PIPELAB_ASSIGN_OR_RETURN(const double peak, PeakFlops(device.get(), device));
  std::cout << absl::StrFormat("%s: a product of 8192^3 in bf16 reaches %.0f TFLOP/s\n", about.name,
                               peak * 1e-12);
  absl::StrAppendFormat(json, "{\"device\": \"%s\", \"matmul_peak_tflops\": %.1f, \"layers\": [",
                        about.name, peak * 1e-12);
  std::cout << "tokens  samples  attention  forward ms  share  backward ms  share\n";
  bool first = true;
  for (const int64_t tokens : Numbers(absl::GetFlag(FLAGS_tokens))) {
    for (const int64_t samples : Numbers(absl::GetFlag(FLAGS_samples))) {
      for (const BlockAttention kind : {BlockAttention::kBackend, BlockAttention::kProducts}) {
        if (!first) absl::StrAppend(json, ",");
        first = false;
        PIPELAB_RETURN_IF_ERROR(MeasureBlock(device, peak, tokens, samples, kind, json));
      }
    }
  }
  absl::StrAppend(json, "\n]}\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  std::string json;
  const absl::Status status = pipelab::Measure(&json);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return absl::IsNotFound(status) ? 3 : 1;
  }
  if (!absl::GetFlag(FLAGS_json).empty()) std::ofstream(absl::GetFlag(FLAGS_json)) << json;
  return 0;
}
