#include "pipelines/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// So that products of sizes cannot overflow, and networks have a list a pair of devices.
constexpr int64_t kMostDevices = int64_t{1} << 20;

constexpr const char* kSharingNames[] = {"pair", "device", "unit", "mesh", "torus"};

template <typename... Parts>
absl::Status Error(absl::string_view place, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", parts...));
}

template <typename T>
absl::Status CheckSource(absl::string_view place, const Sourced<T>& sourced) {
  if (!sourced.source.empty()) return absl::OkStatus();
  return Error(absl::StrCat(place, ".source"), "missing: every value says where it is from");
}

// Above 0 and finite.
template <typename T>
absl::Status CheckPositive(absl::string_view place, const Sourced<T>& sourced) {
  const double value = static_cast<double>(sourced.value.value());
  if (!(value > 0 && std::isfinite(value))) return Error(place, "must be above 0, not ", value);
  return CheckSource(place, sourced);
}

absl::Status CheckLatency(absl::string_view place, const Sourced<Nanoseconds>& latency) {
  if (latency.value < Nanoseconds(0)) return Error(place, "must not be negative");
  return CheckSource(place, latency);
}

absl::Status CheckConnection(absl::string_view place, const Connection& connection) {
  PIPELAB_RETURN_IF_ERROR(CheckLatency(absl::StrCat(place, ".latency"), connection.latency));
  return CheckPositive(absl::StrCat(place, ".bandwidth"), connection.bandwidth);
}

absl::Status CheckCurveAt(absl::string_view place, const Sourced<EfficiencyCurve>& curve) {
  const absl::Status status = CheckCurve(curve.value);
  if (!status.ok()) return Error(absl::StrCat(place, ".points"), status.message());
  return CheckSource(place, curve);
}

absl::Status CheckDevice(const DeviceSpec& device) {
  if (device.name.empty()) return Error("device.name", "must not be empty");
  if (device.peaks.empty()) return Error("device.peaks", "must have a number type");
  for (const auto& [type, peak] : device.peaks) {
    PIPELAB_RETURN_IF_ERROR(
        CheckPositive(absl::StrCat("device.peaks.", NumberTypeName(type)), peak));
  }
  PIPELAB_RETURN_IF_ERROR(CheckPositive("device.memory", device.memory));
  PIPELAB_RETURN_IF_ERROR(CheckPositive("device.memory_bandwidth", device.memory_bandwidth));
  PIPELAB_RETURN_IF_ERROR(CheckLatency("device.launch_overhead", device.launch_overhead));
  if (device.arithmetic.empty()) return Error("device.arithmetic", "must have an operation");
  for (const auto& [kind, curve] : device.arithmetic) {
    const std::string place = absl::StrCat("device.arithmetic.", OperationKindName(kind));
    if (!HasProducts(kind)) return Error(place, "has none: memory_efficiency sets its time");
    PIPELAB_RETURN_IF_ERROR(CheckCurveAt(place, curve));
  }
  for (const auto& [kind, curve] : device.memory_efficiency_of) {
    const std::string place = absl::StrCat("device.memory_efficiency_of.", OperationKindName(kind));
    if (kind == OperationKind::kMeasured) return Error(place, "has none: its time is measured");
    PIPELAB_RETURN_IF_ERROR(CheckCurveAt(place, curve));
  }
  if (device.product_tile.has_value()) {
    const ProductTile& tile = device.product_tile->value;
    if (tile.m < 1 || tile.n < 1 || tile.k < 1) {
      return Error("device.product_tile", "m, n and k must be at least 1");
    }
    PIPELAB_RETURN_IF_ERROR(CheckSource("device.product_tile", *device.product_tile));
  }
  if (device.product_alignment.has_value()) {
    const absl::Status status = CheckAlignment(device.product_alignment->value);
    if (!status.ok()) return Error("device.product_alignment.points", status.message());
    PIPELAB_RETURN_IF_ERROR(CheckSource("device.product_alignment", *device.product_alignment));
  }
  if (device.host_launch.has_value()) {
    PIPELAB_RETURN_IF_ERROR(CheckLatency("device.host_launch", *device.host_launch));
  }
  if (device.launch_gap.has_value()) {
    PIPELAB_RETURN_IF_ERROR(CheckLatency("device.launch_gap", *device.launch_gap));
  }
  if (device.step_set_up.has_value()) {
    PIPELAB_RETURN_IF_ERROR(CheckLatency("device.step_set_up", *device.step_set_up));
  }
  if (device.collective_launch.has_value()) {
    PIPELAB_RETURN_IF_ERROR(CheckLatency("device.collective_launch", *device.collective_launch));
  }
  if (device.collective_overhead.has_value()) {
    PIPELAB_RETURN_IF_ERROR(
        CheckLatency("device.collective_overhead", *device.collective_overhead));
  }
  return CheckCurveAt("device.memory_efficiency", device.memory_efficiency);
}

// A level tells so many rings apart, and its name has so many bytes.
constexpr size_t kMostRings = 1024, kMostName = 200;

absl::Status CheckLevel(const std::string& place, const ClusterLevel& level) {
  if (level.name.empty()) return Error(absl::StrCat(place, ".name"), "must not be empty");
  if (level.name.size() > kMostName) {
    return Error(absl::StrCat(place, ".name"), "must have at most ", kMostName, " bytes, not ",
                 level.name.size());
  }
  if (level.rings.size() > kMostRings) {
    return Error(absl::StrCat(place, ".ring"), "must be at most ", kMostRings, ", not ",
                 level.rings.size());
  }
  if (level.size < 1 || level.size > kMostDevices) {
    return Error(absl::StrCat(place, ".size"), "must be from 1 to ", kMostDevices, ", not ",
                 level.size);
  }
  const bool grid = level.sharing == Sharing::kMesh || level.sharing == Sharing::kTorus;
  int64_t product = grid ? 1 : level.size;
  for (int64_t n : level.shape) {
    product = n >= 1 && n <= kMostDevices && product <= kMostDevices ? product * n : 0;
  }
  if (product != level.size || (!grid && !level.shape.empty())) {
    return Error(absl::StrCat(place, ".shape"),
                 grid ? absl::StrCat("must multiply to the size, ", level.size)
                      : "only a mesh or torus has one");
  }
  PIPELAB_RETURN_IF_ERROR(CheckConnection(place, level.connection));
  for (size_t i = 0; i < level.rings.size(); ++i) {
    const RingConnection& ring = level.rings[i];
    const bool alone = level.rings.size() == 1 && ring.ranks == 0;
    const std::string at =
        alone ? absl::StrCat(place, ".ring") : absl::StrCat(place, ".ring[", i, "]");
    const int64_t least = i > 0 ? level.rings[i - 1].ranks + 1 : alone ? 0 : 2;
    if (ring.ranks < least || ring.ranks > kMostDevices) {
      return Error(absl::StrCat(at, ".ranks"), "must be at least ", least, " and at most ",
                   kMostDevices, ", not ", ring.ranks);
    }
    PIPELAB_RETURN_IF_ERROR(CheckConnection(at, ring.connection));
    for (const auto& [key, bandwidth] : {std::make_pair(".all_reduce", &ring.all_reduce),
                                         std::make_pair(".all_to_all", &ring.all_to_all)}) {
      if (!bandwidth->has_value()) continue;
      PIPELAB_RETURN_IF_ERROR(
          CheckConnection(absl::StrCat(at, key), {ring.connection.latency, **bandwidth}));
    }
  }
  if (!level.through.has_value()) return absl::OkStatus();
  if (level.through->name.empty()) return Error(absl::StrCat(place, ".through.name"), "missing");
  return CheckConnection(absl::StrCat(place, ".through"), level.through->connection);
}

}  // namespace

const char* SharingName(Sharing sharing) { return kSharingNames[static_cast<int>(sharing)]; }

absl::StatusOr<Sharing> FindSharing(absl::string_view name) {
  for (int i = 0; i <= static_cast<int>(Sharing::kTorus); ++i) {
    if (name == kSharingNames[i]) return static_cast<Sharing>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is unknown",
                   NearestOrAll(name, {std::begin(kSharingNames), std::end(kSharingNames)})));
}

int64_t ClusterSpec::devices_in(int level) const {
  int64_t devices = 1;
  for (int i = 0; i <= level; ++i) devices *= levels[i].size;
  return devices;
}

int64_t ClusterSpec::max_devices() const { return devices_in(static_cast<int>(levels.size()) - 1); }

const RingConnection* ClusterLevel::RingOf(int64_t ranks) const {
  for (const RingConnection& ring : rings) {
    if (ring.ranks == 0 || ranks <= ring.ranks) return &ring;
  }
  return rings.empty() ? nullptr : &rings.back();
}

ClusterSpec WithNodesFor(int64_t devices, ClusterSpec cluster) {
  ClusterLevel& outer = cluster.levels.back();
  if (cluster.levels.size() == 1 || !outer.shape.empty()) return cluster;
  const int64_t in_node = cluster.devices_in(static_cast<int>(cluster.levels.size()) - 2);
  outer.size = std::max(outer.size, (devices + in_node - 1) / in_node);
  return cluster;
}

absl::Status CheckCluster(const ClusterSpec& cluster) {
  if (cluster.name.empty()) return Error("name", "must not be empty");
  PIPELAB_RETURN_IF_ERROR(CheckDevice(cluster.device));
  if (cluster.host_link.has_value()) {
    PIPELAB_RETURN_IF_ERROR(CheckPositive("host_link.bandwidth", cluster.host_link->bandwidth));
  }
  if (cluster.levels.empty()) return Error("levels", "must have one");
  if (cluster.levels.size() > kMostClusterLevels) {
    return Error("levels", "must be at most ", kMostClusterLevels, ", not ", cluster.levels.size());
  }
  int64_t devices = 1;
  for (size_t i = 0; i < cluster.levels.size(); ++i) {
    const std::string place = absl::StrCat("levels[", i, "]");
    PIPELAB_RETURN_IF_ERROR(CheckLevel(place, cluster.levels[i]));
    devices *= cluster.levels[i].size;
    if (devices > kMostDevices) {
      return Error(absl::StrCat(place, ".size"), "makes more than ", kMostDevices, " devices");
    }
  }
  return absl::OkStatus();
}

std::string CalibrationWarning(const ClusterSpec& cluster) {
  const DeviceSpec& device = cluster.device;
  if (!device.calibrated.empty()) return "";
  const std::string what =
      device.rates != nullptr
          ? absl::StrCat("rates of products and attention are measured (",
                         device.rates->name.empty() ? "its own" : device.rates->name,
                         "), all else is assumed; ")
          : "efficiencies are assumed, not calibrated to runs; ";
  return absl::StrCat(cluster.name, ": ", what,
                      device.published.empty()
                          ? "compare its times with one another, not with a clock"
                          : absl::StrCat("published runs reach ", device.published));
}

EfficiencyRange EfficiencyRangeOf(const ClusterSpec& cluster) {
  const DeviceSpec& device = cluster.device;
  if (!device.calibrated.empty()) return {};
  return device.efficiency_range.has_value() ? device.efficiency_range->value : kAssumedRange;
}

ClusterSpec WithEfficiency(ClusterSpec cluster, double times) {
  DeviceSpec& device = cluster.device;
  const auto scale = [times](EfficiencyCurve* curve) {
    for (EfficiencyCurve::Point& p : curve->points) p.share = std::min(1.0, p.share * times);
  };
  for (auto& [kind, curve] : device.arithmetic) scale(&curve.value);
  for (auto& [kind, curve] : device.memory_efficiency_of) scale(&curve.value);
  if (device.rates != nullptr) {
    KernelRates rates = *device.rates;
    if (!rates.sustained.has_value()) rates.sustained = {1.0, "all of it"};
    rates.sustained->value *= times;
    rates.name.clear();
    device.rates = std::make_shared<const KernelRates>(std::move(rates));
  }
  scale(&device.memory_efficiency.value);
  for (auto* host : {&device.host_launch, &device.collective_launch, &device.collective_overhead}) {
    if (!host->has_value()) continue;
    Nanoseconds& time = (*host)->value;
    time = Nanoseconds(std::llround(static_cast<double>(time.value()) / times));
  }
  return cluster;
}

}  // namespace pipelab
