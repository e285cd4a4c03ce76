// The nearest numbers that would do, for messages.
//
//   NearestDivisor(30, 32);      // 32; of two equally near ones the smaller
//   NearestMultiple(30, 8);      // 32
#ifndef PIPELAB_TOOLS_BASE_NEAREST_H_
#define PIPELAB_TOOLS_BASE_NEAREST_H_

#include <algorithm>
#include <cstdint>

namespace pipelab {

// The divisor of `of`, which must be above 0.
inline int64_t NearestDivisor(int64_t wanted, int64_t of) {
  for (int64_t off = 0;; ++off) {
    const int64_t below = wanted - off, above = wanted + off;
    if (below >= 1 && below <= of && of % below == 0) return below;
    if (above <= of && of % above == 0) return above;
  }
}

// At least one time `unit`, above 0.
inline int64_t NearestMultiple(int64_t wanted, int64_t unit) {
  return std::max<int64_t>(1, (wanted + unit / 2) / unit) * unit;
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_NEAREST_H_
