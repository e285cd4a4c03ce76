#include "kernels/cpu/int4/int4_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

PIPELAB_SIMD float LargestOf(const float* x, int64_t n) {
  float most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  return most;
}

// Bytes 0 4 1 5 2 6 3 7 of a unit of 8.
PIPELAB_INLINE uint64_t InPlaces(uint64_t unit) {
  const auto spread = [](uint64_t half) {
    half = (half | half << 16) & 0x0000ffff0000ffffu;
    return (half | half << 8) & 0x00ff00ff00ff00ffu;
  };
  return spread(unit & 0xffffffffu) | spread(unit >> 32) << 8;
}

// The sum of the n <= 128 bytes, which `to` takes in their places.
PIPELAB_SIMD int32_t ToBytes(const float* x, int64_t n, Int8Step step, int8_t* to) {
  alignas(64) int8_t in_order[128] = {};
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    in_order[i] = step.Of(x[i]);
    sum += in_order[i];
  }
  for (int64_t i = 0; i < n; i += kInt4Rows) {
    uint64_t unit;
    std::memcpy(&unit, in_order + i, sizeof(unit));
    unit = InPlaces(unit);
    std::memcpy(to + i, &unit, sizeof(unit));
  }
  return sum;
}

bool Has(const char* feature_set) {
#if defined(__x86_64__)
  if (std::strcmp(feature_set, "avx2") == 0) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return false;
  if (std::strcmp(feature_set, "avx512_bf16") == 0) return __builtin_cpu_supports("avx512bf16");
  if (std::strcmp(feature_set, "avx512_vnni") == 0) return __builtin_cpu_supports("avx512vnni");
  return true;
#else
  return false;
#endif
}

}  // namespace

Int8Book::Int8Book(const Int4Book& numbers) {
  std::transform(numbers.begin(), numbers.end(), values,
                 [](float x) { return static_cast<int8_t>(std::clamp(x, -127.0f, 127.0f)); });
  zero = -*std::min_element(values, values + 16);
  for (int i = 0; i < 16; ++i) {
    u[i] = static_cast<uint8_t>(values[i] + zero);
    is_code = is_code && u[i] == i;
  }
}

Int4Activations::Int4Activations(Int4Math math, const Int4Matrix& matrix, const float* x_MK,
                                 int64_t m)
    : math(math),
      m(m),
      k(matrix.shape.units() * kInt4Rows),
      spans(matrix.shape.spans()),
      book(FactorsOfBook(math, matrix.book)),
      int8_book(math == Int4Math::kInt8 ? book.numbers : Int4Book{}) {
  if (math == Int4Math::kInt8) {
    MakeBytes(matrix.shape, x_MK);
    return;
  }
  const int64_t own = matrix.shape.k;
  floats.assign(m * k, 0.0f);
  for (int64_t r = 0; r < m; ++r) std::copy_n(x_MK + r * own, own, &floats[r * k]);
  if (math != Int4Math::kBFloat16) return;
  for (float& x : floats) x = BFloat16(x);
  pairs.resize(m * k / 2);
  std::transform(floats.begin(), floats.end(), reinterpret_cast<BFloat16*>(pairs.data()),
                 [](float x) { return BFloat16(x); });
}

void Int4Activations::MakeBytes(const Int4Shape& shape, const float* x_MK) {
  bytes.assign(m * k, 0);
  steps.resize(m * spans);
  excess.resize(m * spans);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t s = 0; s < spans; ++s) {
      const float* const x = x_MK + r * shape.k + s * shape.span();
      const int64_t count = std::min(shape.span(), shape.k - s * shape.span());
      const Int8Step step(LargestOf(x, count));
      const int32_t sum = ToBytes(x, count, step, &bytes[r * k + s * shape.span()]);
      steps[r * spans + s] = step.step * book.step;
      excess[r * spans + s] = -int8_book.zero * sum;
    }
  }
}

Int4Matrix MatrixOf(const Int4Weights& w) {
  return {w.shape, w.codes.i32().data(), static_cast<const BFloat16*>(w.scales.data()), w.book};
}

std::vector<Int4Path> Int4Paths(Int4Math math) {
  std::vector<Int4Path> paths;
  const auto add = [&](const char* name, Int4Run run) {
    if (run != nullptr && Has(name)) paths.push_back({name, run});
  };
  if (math == Int4Math::kInt8) add("avx512_vnni", Avx512VnniInt4());
  if (math == Int4Math::kBFloat16) add("avx512_bf16", Avx512Bf16Int4());
  add("avx512", Avx512Int4(math));
  add("avx2", Avx2Int4(math));
  paths.push_back({"plain", PlainInt4(math)});
  return paths;
}

}  // namespace cpu
}  // namespace pipelab
