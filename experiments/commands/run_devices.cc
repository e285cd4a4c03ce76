#include "experiments/commands/run_devices.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_devices.h"
#include "kernels/cuda/devices.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, backend, "cpu",
          "what devices compute on: cpu, cuda (streams of the GPUs in turn; a build with "
          "--config=cuda), emulated (the CUDA backend's kernels as loops; a build without)");
ABSL_FLAG(std::string, precision, "fp32", "products with --backend=cuda: fp32, tf32, bf16");

namespace pipelab {

absl::StatusOr<ComputeDevices> DevicesFromFlags() {
  const std::string backend = absl::GetFlag(FLAGS_backend);
  const std::string text = absl::GetFlag(FLAGS_precision);
  const absl::StatusOr<gpu::Precision> precision = gpu::ParsePrecision(text);
  if (!precision.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--precision=", text, ": must be fp32, tf32 or bf16"));
  }
  if (*precision != gpu::Precision::kFloat32 && backend != "cuda") {
    return absl::InvalidArgumentError(
        absl::StrCat("--precision=", text, ": with --backend=cuda alone"));
  }
  if (backend == "cpu") return CpuDevices();
  if (backend == "cuda" || backend == "emulated") return gpu::CudaDevices(backend, *precision);
  return absl::InvalidArgumentError(
      absl::StrCat("--backend=", backend, ": must be cpu, cuda or emulated"));
}

}  // namespace pipelab
