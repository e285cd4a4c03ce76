// What ranks compute on, for whoever makes them: an arena's memory and the backend on it.
//
//   const ComputeDevices devices = CpuDevices();      // or gpu::CudaDevices("cuda", format)
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<ComputeDevice> four, devices(4));
//   Arena arena(four[0].memory);
//   std::unique_ptr<Backend> backend = four[0].make_backend(&arena);
#ifndef PIPELAB_KERNELS_COMPUTE_DEVICE_H_
#define PIPELAB_KERNELS_COMPUTE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

class Communicator;
class ProcessGroup;

struct ComputeDevice {
  // How this process's rank reaches those of the other processes, one in each; all call it.
  using Join = std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
      ProcessGroup* processes, int ranks, absl::Duration limit)>;
  // What it counted so far, by names fit for JSON.
  using Counts = std::vector<std::pair<std::string, int64_t>>;

  Memory::Shared memory;  // null: the host's
  std::function<std::unique_ptr<Backend>(Arena*)> make_backend;
  Join join = nullptr;  // null: its memory stays in this process, where it is not the host's
  std::function<Counts()> counts = nullptr;  // null: nothing
  // Called before each step of training, while no device works; null: it does not care.
  std::function<void()> begin_step = nullptr;
};

// So many of them; an error where the machine has none. The activations of all are of one type.
class ComputeDevices {
 public:
  using Make = std::function<absl::StatusOr<std::vector<ComputeDevice>>(int count)>;

  ComputeDevices(std::nullptr_t = nullptr) {}  // NOLINT: none, as an empty function
  explicit ComputeDevices(Make make, DataType activations = DataType::kFloat32)
      : make_(std::move(make)), activations_(activations) {}

  explicit operator bool() const { return static_cast<bool>(make_); }
  absl::StatusOr<std::vector<ComputeDevice>> operator()(int count) const { return make_(count); }
  DataType activations() const { return activations_; }  // Backend::activation_type

 private:
  Make make_;
  DataType activations_ = DataType::kFloat32;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMPUTE_DEVICE_H_
