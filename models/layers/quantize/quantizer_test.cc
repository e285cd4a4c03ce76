#include "models/layers/quantize/quantizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/int4_weights.h"
#include "kernels/tensor/arena.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

std::vector<float> Normals(int64_t count, uint64_t seed, const char* stream) {
  const CounterRng rng(seed, stream);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = rng.Normal(i);
  return values;
}

// Inputs of which neighbours are alike, as those of layers are.
InputSquares Correlated(int64_t k, int64_t rows, uint64_t seed) {
  std::vector<float> x = Normals(rows * k, seed, "x");
  for (int64_t i = 1; i < rows * k; ++i) {
    if (i % k != 0) x[i] = 0.8f * x[i - 1] + 0.6f * x[i];
  }
  InputSquares squares(k);
  squares.Add(x);
  return squares;
}

// The sum of squares of x (w - values) over the calibration rows: what GPTQ makes small.
double OutputError(absl::Span<const float> w_KN, absl::Span<const float> values_KN,
                   const InputSquares& squares, int64_t n) {
  const int64_t k = squares.k();
  double error = 0;
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t i = 0; i < k; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < k; ++j) {
        sum += squares.sum_KK()[i * k + j] * (w_KN[j * n + c] - double{values_KN[j * n + c]});
      }
      error += sum * (w_KN[i * n + c] - double{values_KN[i * n + c]});
    }
  }
  return error;
}

TEST(Quantizer, NumbersOfTheBookComeBack) {
  for (const Int4Book& book : {SignedInt4(), NormalFloat4()}) {
    constexpr int64_t kRows = 64, kColumns = 3;
    std::vector<float> w(kRows * kColumns);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const int64_t row = i / kColumns;
      const float scale = 0.25f * static_cast<float>(1 + i % kColumns + 4 * (row / 32));
      w[i] = book[(row * 7) % 16] * scale;
    }
    QuantizeOptions options;
    options.group = 32;
    options.book = book;
    EXPECT_EQ(RoundToNearest(w, kRows, kColumns, options).Values(), w);
  }
}

// Clipping may only help, and no weight is farther from its number than half a step inside.
TEST(Quantizer, RoundingIsWithinHalfAStepOfTheWidestScale) {
  const std::vector<float> w = Normals(256 * 8, 3, "w");
  QuantizeOptions options;
  const QuantizedMatrix q = RoundToNearest(w, 256, 8, options);
  const std::vector<float> values = q.Values();
  double error = 0, plain = 0;
  for (int64_t c = 0; c < 8; ++c) {
    for (int64_t g = 0; g < 2; ++g) {
      float most = 0;
      for (int64_t r = 128 * g; r < 128 * (g + 1); ++r)
        most = std::max(most, std::abs(w[r * 8 + c]));
      for (int64_t r = 128 * g; r < 128 * (g + 1); ++r) {
        const float step = most / 7;
        const float nearest = std::round(w[r * 8 + c] / step) * step;
        plain += std::pow(w[r * 8 + c] - nearest, 2);
        error += std::pow(w[r * 8 + c] - values[r * 8 + c], 2);
      }
    }
  }
  EXPECT_LT(error, 0.9 * plain);
}

// With X^T X = diagonal nothing is spread.
TEST(Quantizer, GptqOfIndependentInputsRoundsToNearest) {
  constexpr int64_t kRows = 64, kColumns = 5;
  std::vector<float> x(kRows * kRows);
  for (int64_t i = 0; i < kRows; ++i) x[i * kRows + i] = 1.0f + static_cast<float>(i % 3);
  InputSquares squares(kRows);
  squares.Add(x);
  const std::vector<float> w = Normals(kRows * kColumns, 5, "w");
  QuantizeOptions options;
  options.group = 32;
  const auto q = Gptq(w, squares, kColumns, options);
  ASSERT_THAT(q, IsOk());
  EXPECT_EQ(q->codes_KN, RoundToNearest(w, kRows, kColumns, options).codes_KN);
}

// The second of two rows takes the first one's error: w1 + H01 / H11 (w0 - q0).
TEST(Quantizer, GptqOfTwoRowsIsTheClosedForm) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const InputSquares squares = Correlated(2, 20, seed);
    const std::vector<float> w = Normals(2, seed, "w");
    QuantizeOptions options;
    options.group = 0;
    options.damping = 0;
    const auto q = Gptq(w, squares, 1, options);
    ASSERT_THAT(q, IsOk());
    const std::vector<double>& h = squares.sum_KK();
    const float scale = q->scales_GN[0];
    const double off = w[0] - double{q->Values()[0]};
    const double moved = w[1] + h[1] / h[3] * off;
    EXPECT_EQ(q->Values()[1],
              static_cast<float>(std::clamp(std::round(moved / scale), -8.0, 7.0)) * scale)
        << seed;
  }
}

TEST(Quantizer, GptqChangesTheOutputLess) {
  int better = 0;
  double of_gptq = 0, of_nearest = 0;
  constexpr int kProblems = 40;
  for (uint64_t seed = 0; seed < kProblems; ++seed) {
    const InputSquares squares = Correlated(128, 512, seed);
    const std::vector<float> w = Normals(128 * 4, seed, "w");
    const QuantizeOptions options;
    const auto q = Gptq(w, squares, 4, options);
    ASSERT_THAT(q, IsOk());
    const double a = OutputError(w, q->Values(), squares, 4);
    const double b = OutputError(w, RoundToNearest(w, 128, 4, options).Values(), squares, 4);
    better += a < b;
    of_gptq += a;
    of_nearest += b;
  }
  EXPECT_GE(better, kProblems * 9 / 10);
  EXPECT_LT(of_gptq, 0.7 * of_nearest);
}

TEST(Quantizer, PackedValuesAreTheQuantizers) {
  const std::vector<float> w = Normals(100 * 40, 7, "w");
  QuantizeOptions options;
  options.group = 64;
  options.book = NormalFloat4();
  const QuantizedMatrix q = RoundToNearest(w, 100, 40, options);
  Arena arena;
  EXPECT_EQ(Int4Values(PackInt4(q.shape, q.book, q.codes_KN, q.scales_GN, &arena)), q.Values());
}

TEST(Quantizer, SaysWhatIsMissing) {
  const std::vector<float> w(4);
  EXPECT_THAT(Gptq(w, InputSquares(2), 2, QuantizeOptions()),
              StatusIs(absl::StatusCode::kFailedPrecondition, "GPTQ: no calibration rows"));
  InputSquares one(2);
  one.Add(std::vector<float>{1, 1});
  QuantizeOptions options;
  options.group = 0;
  options.damping = 0;
  EXPECT_THAT(Gptq(w, one, 2, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "damping 0: X^T X of 1 rows has no inverse; more of it, or more rows, would "
                       "do"));
  options.damping = 0.01;
  EXPECT_THAT(Gptq(w, one, 2, options), IsOk());
}

}  // namespace
}  // namespace pipelab
