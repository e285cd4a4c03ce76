#include "experiments/run/run_devices.h"

#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_devices.h"
#include "kernels/cuda/devices.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, dtype);  // step_input.cc
ABSL_FLAG(std::string, backend, "cpu",
          "what devices compute on: cpu, cuda (streams of the GPUs in turn; a build with "
          "--config=cuda), emulated (the CUDA backend's kernels as loops; a build without)");
ABSL_FLAG(
    std::string, cuda_graphs, "off",
    "on: with --backend=cuda or emulated, actions that repeat are launched as one graph; off");

namespace pipelab {

absl::StatusOr<ComputeDevices> DevicesFromFlags() {
  const std::string backend = absl::GetFlag(FLAGS_backend);
  std::string text = absl::GetFlag(FLAGS_dtype);
  if (text.empty()) text = "fp32";
  const absl::StatusOr<gpu::NumberFormat> format = gpu::ParsePrecision(text);
  if (!format.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", text, ": must be fp32, tf32 or bf16"));
  }
  const bool tf32 = format->products == gpu::Precision::kTf32;
  if (backend != "cuda" && (tf32 || (text == "bf16" && backend != "emulated"))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", text, ": with --backend=cuda ", tf32 ? "alone" : "or emulated"));
  }
  const std::string graphs = absl::GetFlag(FLAGS_cuda_graphs);
  if (graphs != "on" && graphs != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("--cuda_graphs=", graphs, ": must be on or off"));
  }
  if (backend == "cuda" || backend == "emulated") {
    gpu::DeviceOptions options;
    options.format = *format;
    options.graphs = graphs == "on";
    return gpu::CudaDevices(backend, options);
  }
  if (graphs == "on") {
    return absl::InvalidArgumentError("--cuda_graphs=on: requires --backend=cuda or emulated");
  }
  if (backend == "cpu") return CpuDevices();
  return absl::InvalidArgumentError(
      absl::StrCat("--backend=", backend, ": must be cpu, cuda or emulated"));
}

}  // namespace pipelab
