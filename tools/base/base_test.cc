// Faults, units and random numbers.
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/faults.h"
#include "tools/base/rng.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

TEST(Faults, BehindTheFirstOnesAreCounted) {
  Faults faults;
  EXPECT_EQ(faults.Of("f").message(), "");
  for (int i = 1; i <= 8; ++i) faults.Add(absl::InvalidArgumentError(absl::StrCat("f: ", i)));
  EXPECT_EQ(faults.Of("f").message(), "f: 8 faults: 1; 2; 3; 4; 5; 6; 7; 8");
  for (int i = 9; i <= 1000; ++i) faults.Add(absl::InvalidArgumentError(absl::StrCat("f: ", i)));
  EXPECT_EQ(faults.Of("f").message(), "f: 1000 faults: 1; 2; 3; 4; 5; 6; 7; 8; and 992 more");
}

TEST(Units, PrintWithPrefix) {
  EXPECT_EQ(ToString(Bytes(0)), "0 B");
  EXPECT_EQ(ToString(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(ToString(Nanoseconds(37200000)), "37.2 ms");
  EXPECT_EQ(ToString(Flops(52e9)), "52 Gflop");
  EXPECT_EQ(ToString(Bytes(-2048)), "-2 KiB");
}

// Known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Rng, PhiloxKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, NamesAreIndependentStreams) {
  CounterRng a(1, "a"), b(1, "b"), a2(1, "a");
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.Bits(i), a2.Bits(i));
    equal += a.Bits(i) == b.Bits(i);
  }
  EXPECT_EQ(equal, 0);
}

TEST(Rng, MomentsAreRight) {
  CounterRng rng(7, "moments");
  const int n = 100000;
  double sum = 0, squares = 0, uniform = 0;
  for (int i = 0; i < n; ++i) {
    const double x = rng.Normal(i);
    sum += x;
    squares += x * x;
    uniform += rng.Uniform(i);
    ASSERT_LT(rng.Below(i, 17), 17u);
  }
  // Five standard errors.
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(uniform / n, 0.5, 5 / std::sqrt(12.0 * n));
}

}  // namespace
}  // namespace pipelab
