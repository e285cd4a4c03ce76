// Matrices of weights as 4-bit codes: round to nearest, and GPTQ (Frantar, Ashkboos, Hoefler,
// Alistarh, ICLR 2023, arXiv 2210.17323).
//
//   QuantizeOptions options;                                       // groups of 128, signed int4
//   QuantizedMatrix q = RoundToNearest(w_KN, k, n, options);
//   InputSquares squares(k);                                       // X^T X of what goes in
//   squares.Add(x_MK, rows);
//   PIPELAB_ASSIGN_OR_RETURN(q, Gptq(w_KN, squares, n, options));
//   Int4Weights weights = PackInt4(q.shape, q.book, q.codes_KN, q.scales_GN, &arena);
//
// A group's scale is the one of 32, from the largest weight's down to half of it, with the least
// sum of squared errors: clipping the few largest weights makes all others finer. It is rounded to
// bfloat16 before codes are chosen.
//
// GPTQ takes rows one after the other and spreads each one's error over the rows that are left, by
// the inverse of X^T X, so that the product on the calibration inputs changes least.
#ifndef PIPELAB_MODELS_QUANTIZE_QUANTIZER_H_
#define PIPELAB_MODELS_QUANTIZE_QUANTIZER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/int4_weights.h"

namespace pipelab {

struct QuantizeOptions {
  int64_t group = 128;  // rows with one scale; 32, 64, 128, or 0: a whole column
  Int4Book book = SignedInt4();
  // Added to the diagonal of X^T X, in means of it, so that it can be inverted.
  double damping = 0.01;
};

struct QuantizedMatrix {
  Int4Shape shape;
  Int4Book book;
  std::vector<uint8_t> codes_KN;
  std::vector<float> scales_GN;
  std::vector<float> Values() const;  // [K, N]
};
using QuantizedMatrices = std::map<std::string, QuantizedMatrix>;  // by the parameter's name

// X^T X in double, of the rows that go into a product.
class InputSquares {
 public:
  explicit InputSquares(int64_t k) : k_(k), sum_(k * k) {}
  void Add(absl::Span<const float> x_MK);
  int64_t k() const { return k_; }
  int64_t rows() const { return rows_; }
  const std::vector<double>& sum_KK() const { return sum_; }

 private:
  int64_t k_, rows_ = 0;
  std::vector<double> sum_;
};

QuantizedMatrix RoundToNearest(absl::Span<const float> w_KN, int64_t k, int64_t n,
                               const QuantizeOptions& options);

// FailedPrecondition without calibration rows; InvalidArgument where no inverse exists, which names
// the damping.
absl::StatusOr<QuantizedMatrix> Gptq(absl::Span<const float> w_KN, const InputSquares& squares,
                                     int64_t n, const QuantizeOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_QUANTIZE_QUANTIZER_H_
