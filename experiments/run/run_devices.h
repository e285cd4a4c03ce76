// --backend, --dtype and --cuda_graphs: what the ranks of `run` compute on.
//
//   PIPELAB_ASSIGN_OR_RETURN(options.devices, DevicesFromFlags());
#ifndef PIPELAB_EXPERIMENTS_RUN_RUN_DEVICES_H_
#define PIPELAB_EXPERIMENTS_RUN_RUN_DEVICES_H_

#include "absl/status/statusor.h"
#include "kernels/compute_device.h"

namespace pipelab {

// InvalidArgument naming the flag; with --backend=cuda the error of a machine without a GPU comes
// when devices are made: "no CUDA device: ...".
absl::StatusOr<ComputeDevices> DevicesFromFlags();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_RUN_DEVICES_H_
