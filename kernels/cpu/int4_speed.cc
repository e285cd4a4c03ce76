#include "kernels/cpu/int4_speed.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/int4/int4_call.h"
#include "kernels/cpu/int4/int4_peak.h"
#include "kernels/cpu/library_best.h"
#include "kernels/simd.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace cpu {
namespace {

// Four streams of one cache line, as the product's are; fetched as far ahead.
PIPELAB_SIMD uint64_t SumOf(const uint64_t* data, int64_t count) {
  constexpr int64_t kAhead = 512;
  uint64_t sum = 0;
  for (int64_t i = 0; i + 32 <= count; i += 32) {
    for (int line = 0; line < 4; ++line) __builtin_prefetch(data + i + kAhead + 8 * line);
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < 32; ++j) sum += data[i + j];
  }
  return sum;
}

template <class F>
double BestRate(const F& products) {
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const double start = ThreadSeconds();
    const double flops = products(100000);
    best = std::max(best, flops / (ThreadSeconds() - start));
  }
  return best;
}

std::string BestPath(Int4Math math) { return Int4Paths(math).front().name; }

}  // namespace

double PeakFlops(Int4Math math) {
  const std::string best = BestPath(math);
  if (best == "avx512_vnni") return BestRate(&Avx512Int8Products);
  if (best == "avx512_bf16") return BestRate(&Avx512Bf16Products);
  if (best == "avx512") return BestRate(&Avx512Fp32Products);
  if (best != "avx2") return 0;
  return BestRate(math == Int4Math::kInt8 ? &Avx2Int8Products : &Avx2Fp32Products);
}

std::vector<Int4Math> MathsOfTheirOwn() {
  std::vector<Int4Math> maths;
  if (BestPath(Int4Math::kInt8) != "plain") maths.push_back(Int4Math::kInt8);
  if (BestPath(Int4Math::kBFloat16) == "avx512_bf16") maths.push_back(Int4Math::kBFloat16);
  return maths;
}

Int4Product::Int4Product(const Int4Shape& shape, int64_t most_rows) {
  weights_.shape = shape;
  weights_.book = SignedInt4();
  const CounterRng rng(1, "int4");
  weights_.codes = arena_.Allocate(DataType::kInt32, {shape.panels(), shape.units(), kInt4Columns},
                                   MemoryKind::kParameter);
  const auto codes = weights_.codes.i32();
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<int32_t>(rng.Below(i, uint64_t{1} << 32));
  }
  weights_.scales = arena_.Allocate(
      DataType::kBFloat16, {shape.panels(), shape.groups(), kInt4Columns}, MemoryKind::kParameter);
  auto* const scales = static_cast<BFloat16*>(weights_.scales.data());
  for (int64_t i = 0; i < weights_.scales.size(); ++i) scales[i] = 0.01f + 0.01f * rng.Uniform(i);
  x_MK_ = arena_.Allocate(DataType::kFloat32, {most_rows, shape.k}, MemoryKind::kActivation);
  for (int64_t i = 0; i < x_MK_.size(); ++i) x_MK_.f32()[i] = rng.Normal(i);
  y_MN_ = arena_.Allocate(DataType::kFloat32, {most_rows, shape.n}, MemoryKind::kActivation);
}

double Int4Product::Bandwidth() const {
  const Tensor& codes = weights_.codes;
  volatile uint64_t kept = 0;
  const double seconds = cpu::LeastSeconds(&ThreadSeconds, [&] {
    kept = SumOf(static_cast<const uint64_t*>(codes.data()), codes.bytes() / 8);
  });
  return static_cast<double>(codes.bytes()) / seconds;
}

double Int4Product::LeastSeconds(Int4Math math, int64_t m) const {
  const Int4Matrix matrix = MatrixOf(weights_);
  const Int4Path path = Int4Paths(math).front();
  return cpu::LeastSeconds(&ThreadSeconds, [&] {
    const Int4Activations x(math, matrix, x_MK_.f32().data(), m);
    path.run(matrix, x, 0, matrix.shape.panels(), y_MN_.f32().data());
  });
}

}  // namespace cpu
}  // namespace pipelab
