// What a cluster file may leave to the class of its device: launches, efficiencies, latencies.
//
//   PIPELAB_ASSIGN_OR_RETURN(const DeviceClass kind, FindDeviceClass("gpu"));
//   FillFromClass(kind, &device);      // launch_overhead, arithmetic, memory_efficiency, ...
//
// All values are assumed, and are those of the files in pipelines/cluster/specs that nobody has
// calibrated: a highest share of the peak by kind of operation, and half of it for an operation
// that would take as long as the launch overhead.
#ifndef PIPELAB_PIPELINES_CLUSTER_DEVICE_CLASS_H_
#define PIPELAB_PIPELINES_CLUSTER_DEVICE_CLASS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/device.h"
#include "tools/base/units.h"

namespace pipelab {

enum class DeviceClass {
  kGpu,  // a framework on the host launches each operation
  kTpu,  // a step is one compiled program
};

// InvalidArgument, "\"cpu\" is unknown; there are gpu, tpu".
absl::StatusOr<DeviceClass> FindDeviceClass(absl::string_view name);

// Sets what the device has not; its peaks and its memory bandwidth must be set.
void FillFromClass(DeviceClass kind, DeviceSpec* device);

// `rate` is the peak a second. The share is half of `highest` at the size that takes `ramp` at the
// peak, so that any size takes a ramp and its work at the highest share.
Sourced<EfficiencyCurve> RampCurve(double highest, double rate, Nanoseconds ramp);

// The latency of a message between units of a level; 0 is the innermost.
Sourced<Nanoseconds> LatencyOfClass(DeviceClass kind, int level);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_DEVICE_CLASS_H_
