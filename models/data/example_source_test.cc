// Orders cover all examples, passes differ, and any partition of a batch sees the same samples.
#include "models/data/example_source.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(Shuffle, IsAPermutationForEverySize) {
  for (uint64_t n = 1; n <= 300; ++n) {
    const Shuffle shuffle(n, 7, "x");
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) {
      seen.insert(shuffle.At(i));
      EXPECT_LT(shuffle.At(i), n);
    }
    EXPECT_EQ(seen.size(), n);
  }
}

// Each of 8 numbers in each of 8 places about equally often over 8000 seeds: chi-squared with 49
// degrees of freedom, whose 99.99% point is 96.
TEST(Shuffle, IsUniform) {
  constexpr int kN = 8, kSeeds = 8000;
  std::vector<int> counts(kN * kN);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Shuffle shuffle(kN, seed, "x");
    for (int i = 0; i < kN; ++i) ++counts[i * kN + shuffle.At(i)];
  }
  double chi = 0;
  const double expected = static_cast<double>(kSeeds) / kN;
  for (const int c : counts) chi += (c - expected) * (c - expected) / expected;
  EXPECT_LT(chi, 96);
}

TEST(ExampleOrder, EachExampleOnceAPass) {
  const ExampleOrder order(100, /*batch_samples=*/8, 3, "d");
  std::vector<std::vector<int64_t>> passes(3);
  for (int64_t p = 0; p < 300; ++p) passes[p / 100].push_back(order.ExampleAt(p / 8, p % 8));
  EXPECT_NE(passes[0], passes[1]);
  for (std::vector<int64_t>& pass : passes) {
    std::sort(pass.begin(), pass.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(pass[i], i);
  }
  EXPECT_DEATH(order.ExampleAt(0, 8), "the batch that the order was made for");
}

TEST(ExampleOrder, SeedAndPartMatter) {
  const auto first = [](uint64_t seed, const char* part) {
    const ExampleOrder order(1000, 20, seed, part);
    std::vector<int64_t> v;
    for (int64_t i = 0; i < 20; ++i) v.push_back(order.ExampleAt(0, i));
    return v;
  };
  EXPECT_EQ(first(1, "a"), first(1, "a"));
  EXPECT_NE(first(1, "a"), first(2, "a"));
  EXPECT_NE(first(1, "a"), first(1, "b"));
}

TEST(ExampleOrder, InTurnIgnoresTheStep) {
  const ExampleOrder order(5);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(order.ExampleAt(i, i), i % 5);
}

class Numbers : public ExampleSource {
 public:
  explicit Numbers(ExampleOrder order)
      : ExampleSource({{"x", FieldType::kFloat, {2}}, {kTargets, FieldType::kId, {1}, 1000}},
                      std::move(order)) {}

 private:
  void WriteFloats(int, const Draw& draw, absl::Span<float> out) const override {
    out[0] = static_cast<float>(draw.example);
    out[1] = static_cast<float>(draw.sample);
  }
  void WriteIds(int, const Draw& draw, absl::Span<int32_t> out) const override {
    out[0] = static_cast<int32_t>(draw.example);
  }
};

TEST(ExampleSource, FieldsOfASampleBelongTogether) {
  const Numbers source(ExampleOrder(1000, 24, 1, "d"));
  EXPECT_EQ(source.examples(), 1000);
  EXPECT_EQ(source.targets_per_sample(), 1);
  EXPECT_EQ(source.FindField("x"), 0);
  EXPECT_EQ(source.FindField("y"), -1);
  std::vector<float> x(48);
  std::vector<int32_t> y(24);
  source.FillFloats(0, 5, 0, absl::MakeSpan(x));
  source.FillIds(1, 5, 0, absl::MakeSpan(y));
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(x[2 * i], static_cast<float>(y[i]));
    EXPECT_EQ(x[2 * i + 1], static_cast<float>(i));
  }
  for (const size_t n : {1, 2, 3, 8}) {
    for (size_t first = 0; first < 24; first += n) {
      std::vector<int32_t> part(n);
      source.FillIds(1, 5, first, absl::MakeSpan(part));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), y.begin() + first));
    }
  }
}

TEST(ExampleSource, MisuseDies) {
  const Numbers source(ExampleOrder(10));
  std::vector<float> x(3);
  std::vector<int32_t> y(1);
  EXPECT_DEATH(source.FillFloats(0, 0, 0, absl::MakeSpan(x)), "3 numbers of \"x\"");
  EXPECT_DEATH(source.FillIds(0, 0, 0, absl::MakeSpan(y)), "x");
  EXPECT_DEATH(source.Field("image"), "no field \"image\"");
}

}  // namespace
}  // namespace pipelab
