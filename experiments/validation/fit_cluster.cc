#include "experiments/validation/fit_cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "experiments/predict/predict_rows.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

enum Value {
  kMatmulShare,
  kMatmulRamp,  // s
  kMemoryShare,
  kMemoryRamp,  // s
  kAlignedTo1,
  kAlignedTo2,
  kAlignedTo4,
  kHostLaunch,          // s
  kCollectiveOverhead,  // s
  kRingLatency,         // s
  kRingBandwidth,       // of the connection's
  kNumValues,
};
using Values = std::array<double, kNumValues>;

// Rough values, the same for every cluster: where a search ends is not to depend on the last one.
constexpr Values kStart = {0.8, 40e-6, 0.75, 5e-6, 0.4, 0.9, 0.95, 55e-6, 100e-6, 20e-6, 0.7};

// Shares are at most 1; of two alignments the larger one has no less.
bool Possible(const Values& v) {
  for (Value share : {kMatmulShare, kMemoryShare, kAlignedTo4, kRingBandwidth}) {
    if (v[share] > 1) return false;
  }
  return v[kAlignedTo1] <= v[kAlignedTo2] && v[kAlignedTo2] <= v[kAlignedTo4];
}

// With digits that a person would write.
double Rounded(double value, int digits) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - (digits - 1));
  return std::round(value / unit) * unit;
}

Sourced<Nanoseconds> Seconds(double seconds, const std::string& source) {
  return {Nanoseconds(std::llround(seconds * 1e9)), source};
}

ClusterSpec WithValues(ClusterSpec cluster, const Values& v, NumberType type,
                       const std::string& source) {
  DeviceSpec& d = cluster.device;
  const double peak = d.peaks.at(type).value.value(), memory = d.memory_bandwidth.value.value();
  d.arithmetic[OperationKind::kMatmul] = {RampCurve(v[kMatmulShare], v[kMatmulRamp], peak), source};
  d.memory_efficiency = {RampCurve(v[kMemoryShare], v[kMemoryRamp], memory), source};
  d.product_alignment = {{{{1, v[kAlignedTo1]}, {2, v[kAlignedTo2]}, {4, v[kAlignedTo4]}, {8, 1}}},
                         source};
  d.calibrated = source;
  d.host_launch = Seconds(v[kHostLaunch], source);
  d.collective_overhead = Seconds(v[kCollectiveOverhead], source);
  ClusterLevel& node = cluster.levels[0];
  const double link = node.connection.bandwidth.value.value();
  node.rings = {{/*ranks=*/0,
                 {Seconds(v[kRingLatency], source),
                  {BytesPerSecond(Rounded(v[kRingBandwidth] * link, 3)), source}},
                 {}}};
  return cluster;
}

// Two digits more than are known, so that a step of the search is a step.
Values RoundedAll(Values v) {
  for (double& value : v) value = Rounded(value, 3);
  return v;
}

absl::StatusOr<double> ErrorOf(const ClusterSpec& cluster, const MeasuredRows& rows) {
  constexpr double kMost =
      0.2;  // what a row counts: those that stand out have reasons of their own
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> predicted, PredictRows(rows, cluster, "rows"));
  double sum = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    sum += std::min(std::abs(predicted[i] / *rows.rows[i].milliseconds - 1), kMost);
  }
  return sum / static_cast<double>(predicted.size());
}

// One to three values, each by a normally distributed factor; every other step a small one.
Values Neighbour(const Values& v, const CounterRng& rng, int step) {
  const uint64_t first = static_cast<uint64_t>(step) * 8;
  const double width = step % 2 == 0 ? 0.2 : 0.03;
  Values next = v;
  for (uint64_t i = 0; i <= rng.Below(first, 3); ++i) {
    next[rng.Below(first + 1 + 2 * i, kNumValues)] *=
        std::exp(width * rng.Normal(first + 2 + 2 * i));
  }
  return RoundedAll(next);
}

MeasuredRows RowsToFit(const MeasuredRows& rows, int every) {
  MeasuredRows chosen;
  int64_t place = 0;
  for (const MeasuredRow& r : rows.rows) {
    if (r.milliseconds.has_value() && place++ % every == 0) chosen.rows.push_back(r);
  }
  return chosen;
}

}  // namespace

EfficiencyCurve RampCurve(double highest, double ramp_seconds, double peak) {
  EfficiencyCurve curve;
  for (int k = -6; k <= 10; ++k) {
    const double ratio = std::ldexp(1.0, k);  // of the work's time at the peak to the ramp
    curve.points.push_back(
        {Rounded(ratio * ramp_seconds * peak, 3), Rounded(highest * ratio / (1 + ratio), 4)});
  }
  return curve;
}

absl::StatusOr<FittedCluster> FitCluster(const ClusterSpec& start, const MeasuredRows& rows,
                                         const FitOptions& options) {
  const MeasuredRows chosen = RowsToFit(rows, options.every);
  if (chosen.rows.empty())
    return absl::InvalidArgumentError("there are no measured rows to fit to");
  const CounterRng rng(options.seed, "fit");
  Values best = kStart;
  FittedCluster fitted;
  fitted.cluster = WithValues(start, best, NumberType::kFp16, options.source);
  PIPELAB_ASSIGN_OR_RETURN(fitted.first_error, ErrorOf(fitted.cluster, chosen));
  fitted.error = fitted.first_error;
  for (int step = 0; step < options.steps; ++step) {
    const Values next = Neighbour(best, rng, step);
    if (next != best && Possible(next)) {
      ClusterSpec cluster = WithValues(start, next, NumberType::kFp16, options.source);
      PIPELAB_ASSIGN_OR_RETURN(const double error, ErrorOf(cluster, chosen));
      if (error < fitted.error) {
        best = next;
        fitted.cluster = std::move(cluster);
        fitted.error = error;
      }
    }
    if (options.progress) options.progress(step, fitted.error);
  }
  return fitted;
}

}  // namespace pipelab
