#include "kernels/cuda/devices.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_backend.h"
#include "tools/base/status_macros.h"
#ifdef PIPELAB_CUDA
#include "kernels/cuda/cuda_device.h"
#ifndef PIPELAB_NO_NCCL  // tools/gpu/build.sh, whose programs are one process each
#include "kernels/comm/nccl.h"
#endif
#endif

namespace pipelab {
namespace gpu {

namespace {

#ifdef PIPELAB_CUDA
// Which of the processes on this host this one is, as mpirun or srun says: they begin with GPUs of
// their own.
int PlaceOnHost() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    const char* const text = std::getenv(name);
    int place = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &place) && place >= 0) return place;
  }
  return 0;
}
#endif

}  // namespace

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
  const int first = PlaceOnHost();
  for (int i = 0; i < count; ++i) {
    CudaOptions options;
    options.gpu = (first + i) % gpus;
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
      ComputeDevice on;
      on.memory = device;
      on.make_backend = [device](Arena* arena) { return MakeCudaBackend(arena, device); };
#if defined(PIPELAB_CUDA) && !defined(PIPELAB_NO_NCCL)
      on.join = [device](ProcessGroup* processes, int ranks, absl::Duration limit) {
        return MakeNcclCommunicator(processes, ranks, device, limit);
      };
#endif
      all.push_back(std::move(on));
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
