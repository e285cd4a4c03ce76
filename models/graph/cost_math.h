// The units that layer costs are written in.
//
//   costs.forward = MatmulFlops(m, n, k);       // x_MK w_KN
//   costs.kept = FloatBytes(m * c + 2 * m);
//
// Flops count matrix products only, 2 m n k each: what published figures count, and all but a few
// percent of the work. A layer without one (an embedding) has none.
#ifndef PIPELAB_MODELS_GRAPH_COST_MATH_H_
#define PIPELAB_MODELS_GRAPH_COST_MATH_H_

#include <cstdint>

#include "tools/base/units.h"

namespace pipelab {

// In double from the first factor on: products of published sizes pass 2^63.
inline Flops MatmulFlops(int64_t m, int64_t n, int64_t k) {
  return Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

inline Bytes FloatBytes(int64_t elements) { return Bytes(4) * elements; }

// Bytes of an activation's numbers, of its gradient's and of the parameters in layers. Statistics
// and what is read of the data are floats all the same.
//
//   costs.kept = width(m * c) + FloatBytes(2 * m);
struct NumberWidth {
  int64_t bytes = 4;

  Bytes operator()(int64_t elements) const { return Bytes(bytes) * elements; }
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_COST_MATH_H_
