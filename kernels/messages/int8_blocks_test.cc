// Codes and steps against plain loops in double, the bound of the error, bytes that are no message.
#include "kernels/messages/int8_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

// The float32 whose upper half these bits are.
float BFloat16Of(int upper) {
  const uint32_t bits = static_cast<uint32_t>(upper) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// What the header says, as it says it: the first bfloat16 that is large enough, and a division in
// double, whose rounding makes no tie of anything else and keeps ties.
float PlainStep(const Floats& x, int64_t begin, int64_t end) {
  double largest = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (std::isfinite(x[i])) largest = std::max(largest, std::fabs(double{x[i]}));
  }
  int low = -1, high = 0x7f7f;  // 127 of the one are too little, of the other enough
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (127 * double{BFloat16Of(middle)} >= largest ? high : low) = middle;
  }
  return BFloat16Of(high);
}

float Plain(float x, float step) {
  if (!std::isfinite(x)) return kNan;
  if (step == 0) return 0;
  return static_cast<float>(std::nearbyint(double{x} / step) * step + 0.0);
}

Floats RoundTrip(absl::Span<const float> x, int64_t block) {
  const auto message = ToInt8Message(x, block);
  EXPECT_THAT(message, IsOk());
  EXPECT_EQ(static_cast<int64_t>(message->size()), Int8MessageBytes(x.size(), block));
  Floats y(x.size(), -7);
  EXPECT_THAT(FromInt8Message(*message, absl::MakeSpan(y)), IsOk());
  return y;
}

bool SameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectPlain(const Floats& x, int64_t block) {
  const Floats y = RoundTrip(x, block);
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(begin + block, n);
    const float step = PlainStep(x, begin, end);
    for (int64_t i = begin; i < end; ++i) {
      SCOPED_TRACE(absl::StrCat("value ", i, ": ", x[i], ", step ", step));
      const float expected = Plain(x[i], step);
      ASSERT_EQ(std::isnan(y[i]), std::isnan(expected));
      if (std::isnan(expected)) continue;
      ASSERT_EQ(y[i], expected);
      ASSERT_FALSE(y[i] == 0 && std::signbit(y[i]));
      ASSERT_LE(std::fabs(double{x[i]} - double{y[i]}), double{step} / 2);  // exact in double
    }
  }
}

// Values of one magnitude, of many, and any bits at all.
Floats Values(const std::string& kind, int64_t n) {
  const CounterRng rng(3, absl::StrCat(kind, n));
  Floats x(n);
  for (int64_t i = 0; i < n; ++i) {
    const float normal = rng.Normal(i);
    const uint32_t bits = rng.Bits(i);
    if (kind == "normal") x[i] = normal;
    if (kind == "wide") x[i] = std::ldexp(normal, static_cast<int>(bits % 40) - 20);
    if (kind == "subnormal") x[i] = std::ldexp(normal, -131 - static_cast<int>(bits % 8));
    if (kind == "huge") x[i] = std::copysign(kMost * (1 - 0x1p-8f * rng.Uniform(i)), normal);
    if (kind == "ties") x[i] = (static_cast<float>(bits % 255) - 127) / 2;  // of step 1 / 2 or 1
    if (kind == "any") std::memcpy(&x[i], &bits, sizeof(bits));
  }
  if (kind == "ties" && n > 0) x[n / 2] = 127;
  return x;
}

TEST(Int8Blocks, AsPlainLoopsInDouble) {
  int shapes = 0;
  for (const char* kind : {"normal", "wide", "subnormal", "huge", "ties", "any"}) {
    for (const int64_t n : {0, 1, 2, 7, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000}) {
      for (const int64_t block : {1, 3, 16, 33, 64, 256, 5000}) {
        SCOPED_TRACE(absl::StrCat(kind, ", ", n, " values in blocks of ", block));
        ExpectPlain(Values(kind, n), block);
        ++shapes;
      }
    }
  }
  EXPECT_EQ(shapes, 6 * 14 * 7);
}

// Each tie, and what lies next to it, for steps of every significand.
TEST(Int8Blocks, TiesGoToEven) {
  for (int significand = 0; significand < 128; ++significand) {
    const float step = BFloat16Of(0x3f80 + significand);
    Floats x = {127 * step};
    for (int k = -127; k < 127; ++k) {
      const float tie = (static_cast<float>(k) + 0.5f) * step;  // exact
      x.insert(x.end(), {std::nextafter(tie, -kInfinity), tie, std::nextafter(tie, kInfinity)});
    }
    ASSERT_EQ(PlainStep(x, 0, x.size()), step);
    ExpectPlain(x, x.size());
  }
}

TEST(Int8Blocks, StepsAreSmall) {
  for (int exponent = -149; exponent < 128; exponent += 3) {
    for (uint64_t i = 0; i < 100; ++i) {
      const float largest = std::ldexp(1 + CounterRng(5, exponent).Uniform(i), exponent);
      ExpectPlain({largest, largest / 7}, 2);
      ASSERT_LE(double{PlainStep({largest}, 0, 1)},
                double{largest} / 127 * (1 + 0x1p-7) + 0x1p-133);
    }
  }
}

TEST(Int8Blocks, WhatIsNotFiniteIsNanAndAlone) {
  const Floats y = RoundTrip({1, kInfinity, 127, -kInfinity, kNan, -0.0f, -127}, 7);
  for (const int i : {1, 3, 4}) EXPECT_TRUE(std::isnan(y[i]));
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[2], 127);
  EXPECT_TRUE(SameBits({y[5], y[6]}, {0, -127}));
  EXPECT_TRUE(SameBits(RoundTrip({kLeast, 0}, 2), {0, 0}));  // less than half the least step
  EXPECT_TRUE(std::isnan(RoundTrip({kInfinity}, 1)[0]));
}

TEST(Int8Blocks, SameBitsForEveryAlignment) {
  const Floats x = Values("wide", 700);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string message, ToInt8Message(x, 100));
  const Floats y = RoundTrip(x, 100);
  for (int shift = 0; shift < 16; ++shift) {
    Floats moved(shift + x.size());
    std::copy(x.begin(), x.end(), moved.begin() + shift);
    const absl::Span<float> values = absl::MakeSpan(moved).subspan(shift);
    EXPECT_EQ(*ToInt8Message(values, 100), message);
    const std::string bytes = std::string(shift, 'x') + message;
    EXPECT_THAT(FromInt8Message(absl::string_view(bytes).substr(shift), values), IsOk());
    EXPECT_TRUE(SameBits(Floats(values.begin(), values.end()), y));
  }
}

TEST(Int8Blocks, BytesInClosedForm) {
  EXPECT_EQ(Int8MessageBytes(0, 256), 16);
  EXPECT_EQ(Int8MessageBytes(1, 256), 16 + 2 + 1);
  EXPECT_EQ(Int8MessageBytes(257, 256), 16 + 4 + 257);
  // 4 times less than float32, less 1 %.
  EXPECT_GT(4.0 * (1 << 20) / Int8MessageBytes(1 << 20, kInt8Block), 0.99 * 4);
}

TEST(Int8Blocks, BytesThatAreNoMessage) {
  EXPECT_THAT(ToInt8Message({1}, 0), StatusIs(absl::StatusCode::kInvalidArgument,
                                              "8-bit messages with blocks of 0 values"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string good, ToInt8Message(Values("normal", 5), 2));
  const auto read = [](const std::string& bytes, size_t values) {
    Floats y(values);
    return FromInt8Message(bytes, absl::MakeSpan(y));
  };
  const auto with = [&](size_t at, int value) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(value);
    return read(bytes, 5);
  };
  const auto bad = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what));
  };
  EXPECT_THAT(read(good, 5), IsOk());
  EXPECT_THAT(read(good, 6), bad("8-bit message: 5 values where 6 were expected"));
  EXPECT_THAT(read(good.substr(0, 15), 5), bad("15 bytes are less than its head"));
  EXPECT_THAT(read(good + "x", 5), bad("28 bytes where 27 are 5 values in blocks of 2"));
  EXPECT_THAT(with(8, 0), bad("blocks of 0 values"));
  EXPECT_THAT(with(15, -1), bad("blocks of -"));
  EXPECT_THAT(with(8, 3), bad("27 bytes where 25 are 5 values in blocks of 3"));
  EXPECT_THAT(with(17, 0x7f), bad("of the block from value 0"));
  EXPECT_THAT(with(21, 0xff), bad("of the block from value 4"));
}

}  // namespace
}  // namespace pipelab
