#include "experiments/calibration/efficiency_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "glog/logging.h"

namespace pipelab {
namespace {

// Means of logarithms.
struct Bin {
  double size = 0, time = 0;
  int count = 0;

  void Add(double log_size, double log_time, int n) {
    size = (size * count + log_size * n) / (count + n);
    time = (time * count + log_time * n) / (count + n);
    count += n;
  }
};

// Bins of a factor of two whose times do not fall.
std::vector<Bin> RisingBins(absl::Span<const Measurement> measurements) {
  std::map<int, Bin> by_size;
  for (const Measurement& m : measurements) {
    CHECK(m.work > 0 && m.seconds > 0) << m.work << " in " << m.seconds << " s";
    by_size[static_cast<int>(std::floor(std::log2(m.work)))].Add(std::log(m.work),
                                                                 std::log(m.seconds), 1);
  }
  std::vector<Bin> rising;
  for (const auto& [exponent, bin] : by_size) {
    rising.push_back(bin);
    while (rising.size() > 1 && rising.back().time <= rising[rising.size() - 2].time) {
      const Bin last = rising.back();
      rising.pop_back();
      rising.back().Add(last.size, last.time, last.count);
    }
  }
  return rising;
}

double RoundedToThreeDigits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

}  // namespace

EfficiencyCurve FitCurve(absl::Span<const Measurement> measurements, double peak) {
  CHECK(!measurements.empty());
  CHECK(peak > 0);
  EfficiencyCurve curve;
  for (const Bin& bin : RisingBins(measurements)) {
    const double size = std::round(std::exp(bin.size));
    const double share = size / std::exp(bin.time) / peak;
    curve.points.push_back({size, std::min(1.0, RoundedToThreeDigits(share))});
    // Rounding may make nearly equal times fall: the largest size then stands for all of them.
    while (!CheckCurve(curve).ok()) curve.points.erase(curve.points.end() - 2);
  }
  return curve;
}

double SpreadAround(const EfficiencyCurve& curve, absl::Span<const Measurement> measurements,
                    double peak) {
  double squares = 0;
  for (const Measurement& m : measurements) {
    const double predicted = m.work / (peak * curve.At(m.work));
    const double ratio = std::log(m.seconds / predicted);
    squares += ratio * ratio;
  }
  return measurements.empty() ? 0 : std::sqrt(squares / static_cast<double>(measurements.size()));
}

}  // namespace pipelab
