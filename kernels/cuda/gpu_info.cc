// What the first GPU is, as a line of JSON.
//
//   bazel run --config=cuda //kernels/cuda:gpu_info
//
// Exit status 3, and "no CUDA device: ..." on stderr, where there is none.
#include <cstdio>
#include <iostream>

#include "absl/strings/str_format.h"
#include "kernels/cuda/cuda_device.h"

int main() {
  const absl::StatusOr<pipelab::gpu::GpuDescription> about = pipelab::gpu::DescribeGpu(0);
  if (!about.ok()) {
    std::cerr << about.status().message() << "\n";
    return absl::IsNotFound(about.status()) ? 3 : 1;
  }
  std::cout << absl::StrFormat(
      "{\"name\": \"%s\", \"capability\": %d, \"multiprocessors\": %d, \"memory_bytes\": %d, "
      "\"driver\": %d, \"runtime\": %d}\n",
      about->name, about->capability, about->multiprocessors, about->memory_bytes, about->driver,
      about->runtime);
  return 0;
}
