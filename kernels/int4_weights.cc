#include "kernels/int4_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "glog/logging.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace {

// f(row, column, int32 of the code, its lowest bit)
template <class F>
void ForEachCode(const Int4Shape& s, const F& f) {
  for (int64_t k = 0; k < s.k; ++k) {
    for (int64_t n = 0; n < s.n; ++n) {
      const int64_t unit = n / kInt4Columns * s.units() + k / kInt4Rows;
      f(k, n, unit * kInt4Columns + n % kInt4Columns, Int4Bit(k % kInt4Rows));
    }
  }
}

int64_t PlaceOfScale(const Int4Shape& s, int64_t group, int64_t n) {
  return (n / kInt4Columns * s.groups() + group) * kInt4Columns + n % kInt4Columns;
}

const BFloat16* ScalesOf(const Int4Weights& w) {
  return static_cast<const BFloat16*>(w.scales.data());
}

}  // namespace

void CheckInt4Shape(const Int4Shape& s) {
  CHECK(s.k > 0 && s.n > 0) << s.k << " x " << s.n << " weights";
  CHECK(s.group == 32 || s.group == 64 || s.group == 128 || s.group == s.k)
      << "groups of " << s.group << " rows; 32, 64, 128 or all " << s.k;
}

Int4Book SignedInt4() {
  Int4Book book;
  for (int i = 0; i < 16; ++i) book[i] = static_cast<float>(i - 8);
  return book;
}

Int4Book NormalFloat4() {
  return {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
          -0.09105004f, 0.0f,         0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
          0.44070983f,  0.56261700f,  0.72295684f,  1.0f};
}

Int4Factors FactorsOfBook(Int4Math math, const Int4Book& book) {
  Int4Factors factors{book};
  if (math == Int4Math::kBFloat16) {
    for (float& number : factors.numbers) number = BFloat16(number);
  }
  if (math != Int4Math::kInt8) return factors;
  float most = 0;
  bool whole = true;
  for (float number : book) {
    most = std::max(most, std::abs(number));
    whole = whole && number == std::nearbyint(number);
  }
  if (most > 0 && !(whole && most <= 127)) factors.step = most / 127;
  for (float& number : factors.numbers) number = std::nearbyint(number / factors.step);
  return factors;
}

Int4Weights PackInt4(const Int4Shape& s, const Int4Book& book, absl::Span<const uint8_t> codes_KN,
                     absl::Span<const float> scales_GN, Arena* arena) {
  CheckInt4Shape(s);
  CHECK_EQ(codes_KN.size(), s.k * s.n);
  CHECK_EQ(scales_GN.size(), s.groups() * s.n);
  const auto zeros = [&](DataType type, int64_t rows) {
    const Tensor tensor =
        arena->Allocate(type, {s.panels(), rows, kInt4Columns}, MemoryKind::kParameter);
    std::memset(tensor.data(), 0, tensor.bytes());
    return tensor;
  };
  Int4Weights w{s, book, zeros(DataType::kInt32, s.units()),
                zeros(DataType::kBFloat16, s.groups())};
  const auto packed = w.codes.i32();
  ForEachCode(s, [&](int64_t k, int64_t n, int64_t place, int bit) {
    const uint32_t code = codes_KN[k * s.n + n];
    CHECK_LT(code, 16) << "of row " << k << ", column " << n;
    packed[place] = static_cast<int32_t>(static_cast<uint32_t>(packed[place]) | code << bit);
  });
  auto* const scales = static_cast<BFloat16*>(w.scales.data());
  for (int64_t g = 0; g < s.groups(); ++g) {
    for (int64_t n = 0; n < s.n; ++n) scales[PlaceOfScale(s, g, n)] = scales_GN[g * s.n + n];
  }
  return w;
}

Int4Codes UnpackInt4(const Int4Weights& w) {
  const Int4Shape& s = w.shape;
  Int4Codes all{std::vector<uint8_t>(s.k * s.n), std::vector<float>(s.groups() * s.n)};
  const auto packed = w.codes.i32();
  ForEachCode(s, [&](int64_t k, int64_t n, int64_t place, int bit) {
    all.codes_KN[k * s.n + n] = static_cast<uint32_t>(packed[place]) >> bit & 15;
  });
  for (int64_t g = 0; g < s.groups(); ++g) {
    for (int64_t n = 0; n < s.n; ++n) {
      all.scales_GN[g * s.n + n] = ScalesOf(w)[PlaceOfScale(s, g, n)];
    }
  }
  return all;
}

std::vector<float> Int4Values(const Int4Weights& w) {
  const Int4Shape& s = w.shape;
  const Int4Codes all = UnpackInt4(w);
  std::vector<float> values(s.k * s.n);
  for (int64_t i = 0; i < s.k * s.n; ++i) {
    values[i] = w.book[all.codes_KN[i]] * all.scales_GN[i / s.n / s.group * s.n + i % s.n];
  }
  return values;
}

}  // namespace pipelab
