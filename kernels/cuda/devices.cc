#include "kernels/cuda/devices.h"

#include <algorithm>
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
#include "kernels/cuda/nccl.h"
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

ComputeDevice::Counts CountsOf(const GraphCounts& counts) {
  return {{"graphs_replayed", counts.replayed},
          {"graphs_changed", counts.changed},
          {"graphs_captured", counts.captured},
          {"lists_plain", counts.plain},
          {"lists_refused", counts.refused},
          {"pieces", counts.pieces},
          {"pieces_in_graphs", counts.pieces_in_graphs}};
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(absl::string_view name, int count,
                                                                 const DeviceOptions& options) {
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
  std::vector<int> used;
  for (int i = 0; i < std::min(count, gpus); ++i) used.push_back((first + i) % gpus);
  PIPELAB_RETURN_IF_ERROR(CheckPeerAccess(used));
  for (int i = 0; i < count; ++i) {
    CudaOptions cuda;
    cuda.gpu = (first + i) % gpus;
    cuda.precision = options.format.products;
    cuda.graphs = options.graphs;
    cuda.graph_limits = options.graph_limits;
    PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, MakeCudaDevice(cuda));
    devices.push_back(std::move(device));
  }
#else
  if (name == "cuda") {
    return absl::FailedPreconditionError(
        "this program was built without CUDA: build it with --config=cuda");
  }
  if (name != "emulated" || options.format.products != Precision::kFloat32) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\": there is \"emulated\", without tf32"));
  }
  EmulatedOptions emulated;
  emulated.graphs = options.graphs;
  emulated.graph_limits = options.graph_limits;
  for (int i = 0; i < count; ++i) devices.push_back(MakeEmulatedDevice(emulated));
#endif
  return devices;
}

ComputeDevices CudaDevices(absl::string_view name, const DeviceOptions& options) {
  const auto make = [name = std::string(name),
                     options](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Device>> devices,
                             MakeDevices(name, count, options));
    std::vector<ComputeDevice> all;
    for (const std::shared_ptr<Device>& device : devices) {
      ComputeDevice on;
      on.memory = device;
      on.make_backend = [device, type = options.format.activations](Arena* arena) {
        return MakeCudaBackend(arena, device, type);
      };
#if defined(PIPELAB_CUDA) && !defined(PIPELAB_NO_NCCL)
      on.join = [device](ProcessGroup* processes, int ranks, absl::Duration limit) {
        return MakeNcclCommunicator(processes, ranks, device, limit);
      };
#endif
      if (options.graphs) {
        on.counts = [device] { return CountsOf(device->graph_counts()); };
        on.begin_step = [device] { device->BeginStep(); };
      }
      all.push_back(std::move(on));
    }
    return all;
  };
  return ComputeDevices(make, options.format.activations);
}

absl::StatusOr<NumberFormat> ParsePrecision(absl::string_view text) {
  NumberFormat format;
  if (text == "tf32") {
    format.products = Precision::kTf32;
  } else if (text == "bf16") {
    format.activations = DataType::kBFloat16;
  } else if (text != "fp32") {
    return absl::InvalidArgumentError(
        absl::StrCat("precision \"", text, "\": there are fp32, tf32, bf16"));
  }
  return format;
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
