#include "kernels/cuda/devices.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_backend.h"
#include "tools/base/status_macros.h"
#ifdef PIPELAB_CUDA
#include "kernels/cuda/cuda_device.h"
#endif

namespace pipelab {
namespace gpu {

absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(absl::string_view name, int count,
                                                                 Precision precision) {
  std::vector<std::shared_ptr<Device>> devices;
#ifdef PIPELAB_CUDA
  if (name == "emulated") {
    return absl::FailedPreconditionError(
        "the emulated device is in builds without --config=cuda alone");
  }
  if (name != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\": there is \"cuda\""));
  }
  PIPELAB_ASSIGN_OR_RETURN(const int gpus, NumGpus());
  for (int i = 0; i < count; ++i) {
    CudaOptions options;
    options.gpu = i % gpus;
    options.precision = precision;
    PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, MakeCudaDevice(options));
    devices.push_back(std::move(device));
  }
#else
  if (name == "cuda") {
    return absl::FailedPreconditionError(
        "this program was built without CUDA: build it with --config=cuda");
  }
  if (name != "emulated" || precision != Precision::kFloat32) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\": there is \"emulated\", of float32"));
  }
  for (int i = 0; i < count; ++i) devices.push_back(MakeEmulatedDevice());
#endif
  return devices;
}

ComputeDevices CudaDevices(absl::string_view name, Precision precision) {
  return [name = std::string(name),
          precision](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Device>> devices,
                             MakeDevices(name, count, precision));
    std::vector<ComputeDevice> all;
    for (const std::shared_ptr<Device>& device : devices) {
      all.push_back({device, [device](Arena* arena) { return MakeCudaBackend(arena, device); }});
    }
    return all;
  };
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view text) {
  if (text == "fp32") return Precision::kFloat32;
  if (text == "tf32") return Precision::kTf32;
  if (text == "bf16") return Precision::kBFloat16;
  return absl::InvalidArgumentError(
      absl::StrCat("precision \"", text, "\": there are fp32, tf32, bf16"));
}

absl::string_view DefaultDeviceName() {
#ifdef PIPELAB_CUDA
  return "cuda";
#else
  return "emulated";
#endif
}

}  // namespace gpu
}  // namespace pipelab
