// Whether two sets of measurements differ by more than noise: the Mann-Whitney U test.
//
//   const NoiseVerdict v = CompareSamples(a, b);
//   v.p_value;        // of differences as large as this one where both are from one distribution
//   v.same            // p_value >= kNoiseLevel
//
// Two-sided. Exact where both have at most kExactSamples values and none is equal to another; else
// the normal approximation with the correction for ties and for continuity. It asks nothing of the
// distributions but that measurements are independent, which steps of one run are only nearly: a
// slow minute of the machine moves them together. Two runs of one binary therefore may differ.
#ifndef PIPELAB_EXPERIMENTS_COMPARE_NOISE_H_
#define PIPELAB_EXPERIMENTS_COMPARE_NOISE_H_

#include <vector>

namespace pipelab {

inline constexpr double kNoiseLevel = 0.01;
inline constexpr int kLeastSamples = 5;   // of each, below which nothing at 1 % can be told
inline constexpr int kExactSamples = 20;  // of each

struct NoiseVerdict {
  bool enough = false;  // measurements to tell; the rest is unset otherwise
  bool same = false;
  double p_value = 1;
};

NoiseVerdict CompareSamples(const std::vector<double>& a, const std::vector<double>& b);

// What there is to say of measurements.
struct Spread {
  int count = 0;
  double median = 0, first_quartile = 0, third_quartile = 0;
};
Spread SpreadOf(std::vector<double> samples);  // zeros of none

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMPARE_NOISE_H_
