// Speed of a 52B-shaped GPT block in bfloat16 on a GPU, forward and backward, as a share of what
// the largest product reaches in the same run: with the Backend's attention, which training has,
// and with attention as batched products of the library (bf16_block.h).
//
//   bazel run -c opt --config=cuda //kernels/cuda:layer_speed -- --json=layers.json
//
// Exit status 3: no CUDA device.
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/bf16_block.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_speed.h"
#include "kernels/cuda/speed_main.h"
#include "tools/base/status_macros.h"

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
  const int runs = absl::GetFlag(FLAGS_runs);
  PIPELAB_ASSIGN_OR_RETURN(const double forward,
                           gpu::MedianSeconds(device.get(), runs, [&] { block.Forward(); }));
  PIPELAB_ASSIGN_OR_RETURN(const double backward,
                           gpu::MedianSeconds(device.get(), runs, [&] { block.Backward(); }));
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
  PIPELAB_ASSIGN_OR_RETURN(const double peak,
                           gpu::LargeProductFlops(device, absl::GetFlag(FLAGS_runs)));
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

int main(int argc, char** argv) { return pipelab::gpu::SpeedMain(argc, argv, &pipelab::Measure); }
