// Products with 4-bit weights: every set of instructions of this processor against the reference,
// over 540 shapes; packing; bits under other addresses and numbers of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/int4/int4_call.h"
#include "kernels/int4_weights.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using cpu::Int4Activations;
using cpu::Int4Matrix;
using cpu::Int4Path;
using cpu::Int4Paths;
using cpu::MatrixOf;

constexpr Int4Math kMaths[] = {Int4Math::kFloat32, Int4Math::kBFloat16, Int4Math::kInt8};

// A product's inputs: weights with codes of all kinds, activations with rows of unequal size, of
// which some are 0.
struct Inputs {
  Inputs(const Int4Shape& s, int64_t m, const Int4Book& book, uint64_t seed) : codes(s.k * s.n) {
    const CounterRng rng(seed, "int4");
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(rng.Below(i, 16));
    const CounterRng of_scales(seed, "scales"), of_x(seed, "x");
    scales.resize(s.groups() * s.n);
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01f + 0.1f * of_scales.Uniform(i);
    weights = PackInt4(s, book, codes, scales, &arena);
    x_MK = arena.Allocate(DataType::kFloat32, {m, s.k}, MemoryKind::kActivation);
    for (int64_t i = 0; i < m * s.k; ++i) {
      const int64_t row = i / s.k;
      x_MK.f32()[i] = row % 5 == 4 ? 0.0f : of_x.Normal(i) * static_cast<float>(1 + row % 3);
    }
  }

  Arena arena;
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  Int4Weights weights;
  Tensor x_MK;
};

std::vector<float> ByReference(Int4Math math, Inputs* in) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend(&in->arena);
  const Tensor y = reference->AllocateFloats({in->x_MK.dim(0), in->weights.shape.n});
  reference->quantized().Product(math, in->x_MK, in->weights, y);
  return {y.f32().begin(), y.f32().end()};
}

std::vector<float> ByPath(const Int4Path& path, Int4Math math, const Inputs& in, int threads = 1) {
  const Int4Matrix matrix = MatrixOf(in.weights);
  const int64_t m = in.x_MK.dim(0), panels = matrix.shape.panels();
  const Int4Activations x(math, matrix, in.x_MK.f32().data(), m);
  std::vector<float> y(m * matrix.shape.n, std::nanf(""));
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      path.run(matrix, x, panels * t / threads, panels * (t + 1) / threads, y.data());
    });
  }
  for (std::thread& thread : all) thread.join();
  return y;
}

// Sums of the products' absolute values; no rounding makes one larger than twice itself.
std::vector<double> AbsoluteSums(const Inputs& in) {
  const Int4Shape& s = in.weights.shape;
  const std::vector<float> values = Int4Values(in.weights);
  std::vector<double> sums(in.x_MK.dim(0) * s.n);
  for (int64_t row = 0; row < in.x_MK.dim(0); ++row) {
    for (int64_t k = 0; k < s.k; ++k) {
      const double x = std::abs(double{in.x_MK.f32()[row * s.k + k]});
      for (int64_t n = 0; n < s.n; ++n) {
        sums[row * s.n + n] += x * std::abs(double{values[k * s.n + n]});
      }
    }
  }
  return sums;
}

struct Case {
  Int4Shape shape;
  int64_t m;
  bool normal_float;
};

// Every size below a unit, a panel and a span and just above, with every group.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  const int64_t ks[] = {1, 7, 8, 33, 127, 128, 130, 257, 300}, ns[] = {1, 31, 32, 65, 100};
  const int64_t ms[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 128};
  size_t i = 0;
  for (int64_t k : ks) {
    for (int64_t n : ns) {
      for (int64_t group : {int64_t{32}, int64_t{64}, int64_t{128}, k}) {
        for (int book = 0; book < 3; ++book) {
          cases.push_back({{k, n, group}, ms[i++ * 5 % 12], book == 2});
        }
      }
    }
  }
  return cases;
}

TEST(Int4, PathsAreWithinEpsilonTimesTerms) {
  const std::vector<Case> cases = Cases();
  EXPECT_GE(cases.size(), 500u);
  double worst = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    Inputs in(c.shape, c.m, c.normal_float ? NormalFloat4() : SignedInt4(), i);
    const std::vector<double> sums = AbsoluteSums(in);
    const Int4Math math = kMaths[i % 3];
    const std::vector<float> want = ByReference(math, &in);
    // A product, its sum and its span's scale each round once.
    const double factor = 2 * 0x1.0p-24 * static_cast<double>(c.shape.k + c.shape.spans() + 3);
    for (const Int4Path& path : Int4Paths(math)) {
      SCOPED_TRACE(absl::StrCat(path.name, " ", c.shape.k, "x", c.shape.n, "/", c.shape.group, " x",
                                c.m, " math ", static_cast<int>(math)));
      const std::vector<float> got = ByPath(path, math, in);
      for (size_t j = 0; j < got.size(); ++j) {
        const double error = std::abs(double{got[j]} - double{want[j]});
        ASSERT_LE(error, factor * sums[j]) << "element " << j << ": " << got[j];
        if (sums[j] > 0) worst = std::max(worst, error / (factor * sums[j]));
      }
    }
  }
  EXPECT_GT(worst, 0.01) << "the bounds are far too wide";
}

// How far the maths are from the weights' product itself: half a unit of 8 bits a factor.
TEST(Int4, MathsRoundOnlyFactors) {
  for (const Int4Book& book : {SignedInt4(), NormalFloat4()}) {
    Inputs in({256, 64, 64}, 8, book, 5);
    const std::vector<float> exact = ByReference(Int4Math::kFloat32, &in);
    const std::vector<float> values = Int4Values(in.weights);
    const std::vector<double> sums = AbsoluteSums(in);
    const std::vector<float> bf16 = ByReference(Int4Math::kBFloat16, &in);
    const std::vector<float> int8 = ByReference(Int4Math::kInt8, &in);
    double largest = 0, off = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_LE(std::abs(bf16[i] - exact[i]), 2.01 * 0x1.0p-8 * sums[i]) << i;
      largest = std::max(largest, std::abs(double{exact[i]}));
      off = std::max(off, std::abs(double{int8[i]} - exact[i]));
    }
    EXPECT_LE(off, 0.02 * largest);
    EXPECT_GT(off, 0) << "int8 rounded nothing";
  }
}

TEST(Int4, UnpackGivesBackWhatWasPacked) {
  for (const Case& c : Cases()) {
    const Inputs in(c.shape, 1, SignedInt4(), 3);
    const Int4Codes got = UnpackInt4(in.weights);
    ASSERT_EQ(got.codes_KN, in.codes);
    for (size_t i = 0; i < in.scales.size(); ++i) {
      ASSERT_EQ(got.scales_GN[i], static_cast<float>(BFloat16(in.scales[i])));
    }
  }
  // Groups of 128: 4.125 bits a weight where nothing is padded.
  const Inputs in({1024, 64, 128}, 1, SignedInt4(), 3);
  EXPECT_EQ(8 * in.weights.bytes(), 4.125 * 1024 * 64);
}

TEST(Int4, SameBitsOnAnyNumberOfThreads) {
  for (const Int4Math math : kMaths) {
    const Inputs in({300, 333, 64}, 9, NormalFloat4(), 7);
    for (const Int4Path& path : Int4Paths(math)) {
      const std::vector<float> alone = ByPath(path, math, in);
      for (int threads : {2, 3, 11}) {
        const std::vector<float> got = ByPath(path, math, in, threads);
        EXPECT_EQ(std::memcmp(got.data(), alone.data(), got.size() * 4), 0)
            << path.name << ", " << threads << " threads";
      }
    }
  }
}

// Sums of int8 products are exact, so sets of instructions differ by the roundings of spans alone.
TEST(Int4, AWholeColumnOfInt8IsExact) {
  const Inputs in({100, 40, 100}, 4, SignedInt4(), 9);
  const std::vector<Int4Path> paths = Int4Paths(Int4Math::kInt8);
  const std::vector<float> plain = ByPath(paths.back(), Int4Math::kInt8, in);
  for (const Int4Path& path : paths) {
    const std::vector<float> got = ByPath(path, Int4Math::kInt8, in);
    EXPECT_EQ(got, plain) << path.name;
  }
}

// The largest codes by the largest activations, of either sign: sums of 16 bits hold them.
TEST(Int4, TheLargestFactorsFit) {
  Inputs in({128, 40, 128}, 5, SignedInt4(), 9);
  for (const uint8_t code : {0, 15}) {
    std::fill(in.codes.begin(), in.codes.end(), code);
    in.weights = PackInt4(in.weights.shape, SignedInt4(), in.codes, in.scales, &in.arena);
    for (int64_t i = 0; i < in.x_MK.size(); ++i) in.x_MK.f32()[i] = i / 128 % 2 == 0 ? 3.0f : -3.0f;
    const std::vector<Int4Path> paths = Int4Paths(Int4Math::kInt8);
    const std::vector<float> plain = ByPath(paths.back(), Int4Math::kInt8, in);
    EXPECT_NEAR(plain[0], 128 * 3 * (code - 8) * static_cast<float>(BFloat16(in.scales[0])), 1e-2);
    for (const Int4Path& path : paths) {
      EXPECT_EQ(ByPath(path, Int4Math::kInt8, in), plain) << path.name;
    }
  }
}

TEST(Int4DeathTest, WrongSizes) {
  const Inputs in({64, 32, 32}, 2, SignedInt4(), 1);
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  EXPECT_DEATH(backend->quantized().Product(Int4Math::kFloat32, in.x_MK, in.weights,
                                            backend->AllocateFloats({2, 33})),
               "Int4Product: \\[2, 64\\] by 64 x 32 for \\[2, 33\\]");
  EXPECT_DEATH(CheckInt4Shape({64, 32, 16}), "groups of 16 rows; 32, 64, 128 or all 64");
}

}  // namespace
}  // namespace pipelab
