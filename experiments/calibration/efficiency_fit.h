// From measured times to an efficiency curve (pipelines/cluster/device.h).
//
//   std::vector<Measurement> m = {{/*work=*/1e6, /*seconds=*/12e-6}, ...};   // flops or bytes
//   EfficiencyCurve curve = FitCurve(m, /*peak=*/150e9);
//
// Operations of one kind and about the same size take different times, by their shapes and by
// noise, and a curve has one share for a size. The rule:
//  1. measurements are put together by size, in bins of a factor of two, each with the geometric
//     mean of its sizes and of its times: the time that is as often too long as too short;
//  2. where a larger size would take less time than a smaller one, the two bins become one (pool
//     adjacent violators: the closest curve, in logarithms, that does not fall; Ayer et al. 1955);
//  3. shares are rounded to three digits, and are at most 1.
// So the result satisfies CheckCurve.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_EFFICIENCY_FIT_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_EFFICIENCY_FIT_H_

#include <vector>

#include "absl/types/span.h"
#include "pipelines/cluster/device.h"

namespace pipelab {

struct Measurement {
  double work = 0;  // flops or bytes, above 0
  double seconds = 0;
};

// `peak` is work per second. At least one measurement (CHECKed).
EfficiencyCurve FitCurve(absl::Span<const Measurement> measurements, double peak);

// How far single measurements lie from the curve: the deviation of the logarithms, 0.1 for 10%.
double SpreadAround(const EfficiencyCurve& curve, absl::Span<const Measurement> measurements,
                    double peak);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_EFFICIENCY_FIT_H_
