// The middle of values, or the mean of the two in the middle.
//
//   MedianOf({3, 1, 2, 10})   // 2.5
#ifndef PIPELAB_EXPERIMENTS_REPORT_MEDIAN_H_
#define PIPELAB_EXPERIMENTS_REPORT_MEDIAN_H_

#include <algorithm>
#include <vector>

namespace pipelab {

// There is at least one.
inline double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_MEDIAN_H_
