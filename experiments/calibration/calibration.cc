#include "experiments/calibration/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "experiments/calibration/busy_cores.h"
#include "experiments/calibration/efficiency_fit.h"
#include "experiments/report/environment.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kParts = 10;              // of a round, to show progress
constexpr int64_t kMostDevices = 1024;  // threads that a study may ask for

double WorkOf(const Operation& o) {
  return HasProducts(o.kind) ? o.flops.value() : 4.0 * static_cast<double>(o.numbers);
}

Nanoseconds InNanoseconds(double seconds) {
  return Nanoseconds(std::max<int64_t>(1, std::llround(seconds * 1e9)));
}

// To three digits: more are noise, and tell nobody anything.
double Rounded(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

class Specification {
 public:
  explicit Specification(const MachineMeasurements& measured) : m_(measured) {}

  absl::StatusOr<ClusterSpec> Make() {
    if (m_.probes.size() != m_.times.size() || m_.probes.empty()) {
      return absl::FailedPreconditionError("no kernels were measured");
    }
    ClusterSpec cluster;
    cluster.name = "measured";
    cluster.title = absl::StrCat("In-process devices, a thread and a core each: ", m_.processor);
    PIPELAB_RETURN_IF_ERROR(SetDevice(&cluster.device));
    cluster.levels = {Threads()};
    cluster.collectives_at_wait = true;  // kernels/comm/in_process_collectives.h
    const absl::Status status = CheckCluster(cluster);
    if (!status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the measurements make no specification: ", status.message()));
    }
    return cluster;
  }

 private:
  std::string Source(absl::string_view what) const {
    return absl::StrCat("measured: ", what, "; ", m_.processor, ", one thread of as many as cores");
  }

  absl::Status SetDevice(DeviceSpec* device) {
    device->name = m_.processor;
    device->own_kernels = true;
    device->calibrated = Source("every kind of kernel over a grid of shapes");
    device->memory = {
        Bytes(m_.memory_bytes / std::max(1, m_.cores)),
        absl::StrCat("measured: the memory of the machine, an equal share for each of ", m_.cores,
                     " cores")};
    device->launch_overhead = {
        InNanoseconds(m_.launch.seconds),
        Source(absl::StrCat("a stage of small activations without its kernels, the median of ",
                            m_.launch.rounds, " rounds"))};
    double flops = 0, bytes = 0;
    const KernelProbe *fastest = nullptr, *widest = nullptr;
    for (size_t p = 0; p < m_.probes.size(); ++p) {
      const Operation& o = m_.probes[p].operation;
      const double rate = WorkOf(o) / m_.times[p].seconds;
      double* const best = HasProducts(o.kind) ? &flops : &bytes;
      if (rate <= *best) continue;
      *best = rate;
      (HasProducts(o.kind) ? fastest : widest) = &m_.probes[p];
    }
    if (fastest == nullptr || widest == nullptr) {
      return absl::FailedPreconditionError("kernels with products and without are both needed");
    }
    // Rounded up, so that no share is above 1.
    device->peaks[NumberType::kFp32] = {
        FlopsPerSecond(Rounded(flops * 1.005)),
        Source(absl::StrCat("the best rate of any kernel, ", fastest->name))};
    device->memory_bandwidth = {
        BytesPerSecond(Rounded(bytes * 1.005)),
        Source(absl::StrCat("the best rate of any kernel, ", widest->name, ", from the caches"))};
    return SetCurves(device);
  }

  absl::Status SetCurves(DeviceSpec* device) {
    const double flops = device->peaks[NumberType::kFp32].value.value(),
                 bytes = device->memory_bandwidth.value.value();
    // First that of copies, which is part of a convolution's call.
    const std::vector<Measurement> sums = Of(OperationKind::kElementwise, nullptr);
    if (sums.empty()) return absl::FailedPreconditionError("no sums or copies were measured");
    device->memory_efficiency = Fitted(sums, bytes, OperationKind::kElementwise);
    for (int k = 0; k < static_cast<int>(OperationKind::kMeasured); ++k) {
      const auto kind = static_cast<OperationKind>(k);
      if (kind == OperationKind::kElementwise) continue;
      const std::vector<Measurement> of = Of(kind, device);
      if (of.empty()) continue;
      if (HasProducts(kind)) {
        device->arithmetic[kind] = Fitted(of, flops, kind);
      } else {
        device->memory_efficiency_of[kind] = Fitted(of, bytes, kind);
      }
    }
    return absl::OkStatus();
  }

  // With `device`, without the time of what calls copy.
  std::vector<Measurement> Of(OperationKind kind, const DeviceSpec* device) const {
    std::vector<Measurement> of;
    for (size_t p = 0; p < m_.probes.size(); ++p) {
      const KernelProbe& probe = m_.probes[p];
      if (probe.operation.kind != kind) continue;
      double seconds = m_.times[p].seconds;
      if (device != nullptr && probe.copied > 0) {
        const absl::StatusOr<Nanoseconds> copy =
            OperationTime(*device, NumberType::kFp32, ElementwiseOperation(probe.copied));
        seconds = std::max(seconds - ToSeconds(*copy), seconds / 10);
      }
      of.push_back({WorkOf(probe.operation), seconds});
    }
    return of;
  }

  Sourced<EfficiencyCurve> Fitted(const std::vector<Measurement>& of, double peak,
                                  OperationKind kind) const {
    Sourced<EfficiencyCurve> curve;
    curve.value = FitCurve(of, peak);
    std::vector<double> spreads;
    int rounds = 0;
    for (size_t p = 0; p < m_.probes.size(); ++p) {
      if (m_.probes[p].operation.kind != kind) continue;
      spreads.push_back(m_.times[p].spread);
      rounds = std::max(rounds, m_.times[p].rounds);
    }
    curve.source = Source(absl::StrFormat(
        "%d calls, each the median of %d rounds (quartiles %.0f%% apart), which lie %.0f%% around "
        "the curve by their shapes",
        of.size(), rounds, 100 * Median(spreads), 100 * SpreadAround(curve.value, of, peak)));
    return curve;
  }

  ClusterLevel Threads() const {
    ClusterLevel level;
    level.name = "threads";
    level.size = kMostDevices;
    level.sharing = Sharing::kPair;
    const std::string trips = absl::StrCat(
        "half of a round trip between two threads, the median of ", m_.link.round_trips);
    level.connection.latency = {InNanoseconds(m_.link.latency_seconds),
                                absl::StrCat("measured: ", trips, "; ", m_.processor)};
    level.connection.bandwidth = {
        BytesPerSecond(Rounded(m_.link.bytes_per_second)),
        absl::StrCat("measured: ", trips,
                     ", of a large message; memory is handed over, not copied; ", m_.processor)};
    return level;
  }

  const MachineMeasurements& m_;
};

int64_t PhysicalMemory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

CalibrationOptions QuickCalibration() {
  CalibrationOptions options;
  options.sizes = ProbeSizes::kQuick;
  options.kernels.turns = 1;
  options.link.round_trips = 20;
  options.link.large_bytes = 1 << 20;
  options.rounds = 1;
  return options;
}

MachineMeasurements MeasurementsOf(const KernelMeasurements& kernels, const LinkTimes& link) {
  MachineMeasurements measured;
  const Environment environment = ReadEnvironment();
  measured.processor = environment.cpu;
  measured.cores = environment.cores;
  measured.memory_bytes = PhysicalMemory();
  measured.probes = kernels.probes();
  measured.times = kernels.Times();
  measured.launch = kernels.Launch();
  measured.link = link;
  return measured;
}

absl::StatusOr<MachineMeasurements> MeasureMachine(const CalibrationOptions& options) {
  const BusyCores busy;
  KernelMeasurements kernels(KernelProbes(options.sizes), options.kernels);
  std::unique_ptr<Progress> progress;
  if (options.progress) {
    progress = std::make_unique<Progress>("kernels", options.rounds * kParts, "part");
  }
  const absl::Time begin = absl::Now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round > 0 && absl::Now() - begin > options.limit) break;
    for (int part = 0; part < kParts; ++part) {
      kernels.MeasurePart(part, kParts);
      if (progress != nullptr) progress->Add(1);
    }
  }
  if (progress != nullptr) progress->Finish();
  PIPELAB_ASSIGN_OR_RETURN(const LinkTimes link, MeasureLink(options.link));
  return MeasurementsOf(kernels, link);
}

absl::StatusOr<ClusterSpec> SpecificationOf(const MachineMeasurements& measured) {
  return Specification(measured).Make();
}

}  // namespace pipelab
