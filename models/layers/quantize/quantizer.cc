#include "models/layers/quantize/quantizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kTriedScales = 32;  // tried for each group, down to half of the largest

// The code whose number is nearest; of two, the lower one.
class NearestCode {
 public:
  explicit NearestCode(const Int4Book& book) : book_(book) {
    CHECK(std::is_sorted(book.begin(), book.end())) << "a code book ascends";
    for (int i = 0; i < 15; ++i) middles_[i] = (book[i] + book[i + 1]) / 2;
  }
  uint8_t Of(float x) const {
    return static_cast<uint8_t>(std::lower_bound(middles_, middles_ + 15, x) - middles_);
  }
  float Value(uint8_t code, float scale) const { return book_[code] * scale; }
  float Rounded(float x, float scale) const { return Value(Of(x / scale), scale); }
  // So that the largest weight on either side is the book's outermost number.
  float WidestScale(float lowest, float highest) const {
    return std::max({lowest / book_.front(), highest / book_.back(), 0.0f});
  }

 private:
  const Int4Book book_;
  float middles_[15];
};

// The group's best scale for a column: rows `stride` apart.
float BestScale(const NearestCode& nearest, const float* w, int64_t rows, int64_t stride) {
  float lowest = 0, highest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    lowest = std::min(lowest, w[i * stride]);
    highest = std::max(highest, w[i * stride]);
  }
  const float widest = nearest.WidestScale(lowest, highest);
  if (widest == 0) return BFloat16(1.0f);
  float best = widest;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTriedScales; ++i) {
    const float scale = BFloat16(widest * (1 - 0.5f * static_cast<float>(i) / kTriedScales));
    double error = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double off = w[r * stride] - nearest.Rounded(w[r * stride], scale);
      error += off * off;
    }
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

QuantizedMatrix Empty(int64_t k, int64_t n, const QuantizeOptions& options) {
  QuantizedMatrix q{{k, n, options.group == 0 ? k : options.group}, options.book, {}, {}};
  CheckInt4Shape(q.shape);
  q.codes_KN.resize(k * n);
  q.scales_GN.resize(q.shape.groups() * n);
  return q;
}

// The scales of the group that begins at row `begin` of w.
void ChooseScales(const NearestCode& nearest, const float* w_KN, int64_t begin,
                  QuantizedMatrix* q) {
  const int64_t n = q->shape.n, rows = std::min(q->shape.group, q->shape.k - begin);
  float* const scales = &q->scales_GN[begin / q->shape.group * n];
  for (int64_t c = 0; c < n; ++c) {
    scales[c] = BestScale(nearest, w_KN + begin * n + c, rows, n);
  }
}

// a_KK = L L^T, L in its lower half; false: a is not positive.
bool Cholesky(int64_t k, double* a) {
  for (int64_t j = 0; j < k; ++j) {
    double* const row = a + j * k;
    for (int64_t i = 0; i <= j; ++i) {
      double sum = row[i];
      for (int64_t l = 0; l < i; ++l) sum -= row[l] * a[i * k + l];
      if (i < j) {
        row[i] = sum / a[i * k + i];
      } else if (!(sum > 0)) {
        return false;
      } else {
        row[j] = std::sqrt(sum);
      }
    }
  }
  return true;
}

// The inverse of L L^T, whole, from its lower half L.
std::vector<double> InverseOf(int64_t k, const std::vector<double>& lower) {
  std::vector<double> half(k * k);  // the inverse of L
  for (int64_t j = 0; j < k; ++j) {
    half[j * k + j] = 1 / lower[j * k + j];
    for (int64_t i = 0; i < j; ++i) {
      double sum = 0;
      for (int64_t l = i; l < j; ++l) sum -= lower[j * k + l] * half[l * k + i];
      half[j * k + i] = sum / lower[j * k + j];
    }
  }
  std::vector<double> inverse(k * k);
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t i = 0; i <= l; ++i) {
      for (int64_t j = 0; j <= l; ++j) inverse[i * k + j] += half[l * k + i] * half[l * k + j];
    }
  }
  return inverse;
}

// The upper factor U of the inverse of the squares: row i says how an error in row i of the weights
// is spread over the rows behind it. U^T U is the inverse, as the lower factor of it transposed.
absl::StatusOr<std::vector<double>> SpreadOf(const InputSquares& squares, double damping) {
  const int64_t k = squares.k();
  std::vector<double> h = squares.sum_KK();
  double mean = 0;
  for (int64_t i = 0; i < k; ++i) mean += h[i * k + i] / static_cast<double>(k);
  for (int64_t i = 0; i < k; ++i) {
    h[i * k + i] += damping * mean;
    if (h[i * k + i] == 0) h[i * k + i] = 1;  // an input that is always 0
  }
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("damping ", damping, ": X^T X of ", squares.rows(),
                     " rows has no inverse; more of it, or more rows, would do"));
  };
  if (!Cholesky(k, h.data())) return error();
  std::vector<double> inverse = InverseOf(k, h);
  if (!Cholesky(k, inverse.data())) return error();
  return inverse;
}

}  // namespace

std::vector<float> QuantizedMatrix::Values() const {
  std::vector<float> values(codes_KN.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / shape.n,
                  column = static_cast<int64_t>(i) % shape.n;
    values[i] = book[codes_KN[i]] * scales_GN[row / shape.group * shape.n + column];
  }
  return values;
}

void InputSquares::Add(absl::Span<const float> x_MK) {
  CHECK_EQ(static_cast<int64_t>(x_MK.size()) % k_, 0) << "rows of " << k_;
  for (const float* x = x_MK.begin(); x != x_MK.end(); x += k_) {
    ++rows_;
    for (int64_t i = 0; i < k_; ++i) {
      const double value = x[i];
      double* const row = &sum_[i * k_];
      for (int64_t j = 0; j < k_; ++j) row[j] += value * x[j];
    }
  }
}

QuantizedMatrix RoundToNearest(absl::Span<const float> w_KN, int64_t k, int64_t n,
                               const QuantizeOptions& options) {
  CHECK_EQ(static_cast<int64_t>(w_KN.size()), k * n);
  const NearestCode nearest(options.book);
  QuantizedMatrix q = Empty(k, n, options);
  for (int64_t row = 0; row < k; ++row) {
    if (row % q.shape.group == 0) ChooseScales(nearest, w_KN.data(), row, &q);
    const float* const scales = &q.scales_GN[row / q.shape.group * n];
    for (int64_t c = 0; c < n; ++c) {
      q.codes_KN[row * n + c] = nearest.Of(w_KN[row * n + c] / scales[c]);
    }
  }
  return q;
}

absl::StatusOr<QuantizedMatrix> Gptq(absl::Span<const float> w_KN, const InputSquares& squares,
                                     int64_t n, const QuantizeOptions& options) {
  const int64_t k = squares.k();
  CHECK_EQ(static_cast<int64_t>(w_KN.size()), k * n);
  if (squares.rows() == 0) return absl::FailedPreconditionError("GPTQ: no calibration rows");
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> lower, SpreadOf(squares, options.damping));
  const NearestCode nearest(options.book);
  QuantizedMatrix q = Empty(k, n, options);
  std::vector<float> w(w_KN.begin(), w_KN.end());  // with the errors so far
  std::vector<float> off(n);
  for (int64_t row = 0; row < k; ++row) {
    if (row % q.shape.group == 0) ChooseScales(nearest, w.data(), row, &q);
    const float* const scales = &q.scales_GN[row / q.shape.group * n];
    const double own = lower[row * k + row];
    for (int64_t c = 0; c < n; ++c) {
      const uint8_t code = nearest.Of(w[row * n + c] / scales[c]);
      q.codes_KN[row * n + c] = code;
      off[c] = static_cast<float>((w[row * n + c] - nearest.Value(code, scales[c])) / own);
    }
    for (int64_t later = row + 1; later < k; ++later) {
      const auto share = static_cast<float>(lower[later * k + row]);
      float* const to = &w[later * n];
      for (int64_t c = 0; c < n; ++c) to[c] -= share * off[c];
    }
  }
  return q;
}

}  // namespace pipelab
