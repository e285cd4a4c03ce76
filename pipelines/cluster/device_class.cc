#include "pipelines/cluster/device_class.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/base/name_table.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<DeviceClass, const char*>, 2> kNames = {
    {{DeviceClass::kGpu, "gpu"}, {DeviceClass::kTpu, "tpu"}}};

// Highest shares of the peak, and of the memory bandwidth.
constexpr std::pair<OperationKind, double> kArithmetic[] = {{OperationKind::kMatmul, 0.85},
                                                            {OperationKind::kConvolution, 0.65},
                                                            {OperationKind::kAttention, 0.45}};
constexpr double kMemory = 0.8;

constexpr char kLaunch[] = "recalled: 3 to 10 us from one kernel's end to the next one's begin";
constexpr char kCompiled[] =
    "assumed: a step is one compiled program, so nothing is launched by the host; what is left is "
    "to read the first operands from memory and to fill a matrix unit";
constexpr char kHost[] =
    "assumed: the default of GPUs under a Python framework, as calibrated for dgx-a100 "
    "(docs/clusters.md)";

}  // namespace

absl::StatusOr<DeviceClass> FindDeviceClass(absl::string_view name) {
  return FindInTable(kNames, name);
}

Sourced<EfficiencyCurve> RampCurve(double highest, double rate, Nanoseconds ramp) {
  Sourced<EfficiencyCurve> curve;
  constexpr double kLeast = 1.0 / 64, kMost = 256, kStep = 4;
  // All points are whole numbers: a file has no half bytes, and must read back to the same curve.
  const double half = std::max(1.0, std::round(rate * ToSeconds(ramp) * kLeast)) / kLeast;
  for (double times = kLeast; times <= kMost; times *= kStep) {
    curve.value.points.push_back({half * times, highest * times / (times + 1)});
  }
  curve.source = absl::StrFormat(
      "assumed: %g of the peak at most, and a ramp of %s (half of it at the size of %s at the "
      "peak)",
      highest, ToString(ramp), ToString(ramp));
  return curve;
}

void FillFromClass(DeviceClass kind, DeviceSpec* device) {
  if (device->launch_overhead.source.empty()) {
    device->launch_overhead = kind == DeviceClass::kGpu
                                  ? Sourced<Nanoseconds>{Microseconds(5), kLaunch}
                                  : Sourced<Nanoseconds>{Microseconds(1), kCompiled};
  }
  if (kind == DeviceClass::kGpu) {
    // As calibrated for dgx-a100: they are the host's, not the card's.
    if (!device->host_launch.has_value()) {
      device->host_launch = {Nanoseconds(56200), kHost};
    }
    if (!device->collective_overhead.has_value()) {
      device->collective_overhead = {Microseconds(213), kHost};
    }
  }
  // A launch without overhead has no ramp, and a curve needs one.
  const Nanoseconds ramp = std::max(device->launch_overhead.value, Nanoseconds(1));
  double peak = 0;
  for (const auto& [type, rate] : device->peaks) peak = std::max(peak, rate.value.value());
  for (const auto& [operation, highest] : kArithmetic) {
    device->arithmetic.try_emplace(operation, RampCurve(highest, peak, ramp));
  }
  if (device->memory_efficiency.value.points.empty()) {
    device->memory_efficiency = RampCurve(kMemory, device->memory_bandwidth.value.value(), ramp);
  }
}

Sourced<Nanoseconds> LatencyOfClass(DeviceClass kind, int level) {
  if (kind == DeviceClass::kTpu) return {Microseconds(1), "assumed: a hop between chips"};
  if (level == 0) {
    return {Microseconds(10), "recalled: about 10 us for a small NCCL send between GPUs of a node"};
  }
  return {Microseconds(20),
          "recalled: about 20 us for a small NCCL send between nodes over InfiniBand"};
}

}  // namespace pipelab
