// The same bits for every order and grouping; the nearest float32 by whole numbers of 352 bits.
#include "kernels/messages/order_free_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using Vector = std::vector<float>;

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();
constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMostFloat = std::numeric_limits<float>::max();
constexpr float kLeastFloat = std::numeric_limits<float>::denorm_min();

uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// A whole number of 2^-149 in words of 32 bits, and nothing clever.
class Wide {
 public:
  void Add(float x, int64_t times) {
    const uint32_t bits = BitsOf(std::fabs(x)), exponent = bits >> 23;
    const uint32_t shift = std::max(exponent, 1u) - 1;
    const uint64_t mantissa = (bits & 0x7fffff) + (exponent > 0 ? 0x800000 : 0);
    const uint64_t part = mantissa << shift % 32;
    if (std::signbit(x)) times = -times;
    words_[shift / 32] += times * static_cast<int64_t>(part & 0xffffffff);
    words_[shift / 32 + 1] += times * static_cast<int64_t>(part >> 32);
  }
  // The absolute value, the highest word first: sizes compare as these do.
  std::array<int64_t, 11> Size() const {
    std::array<int64_t, 11> words = words_;
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        words[i + 1] += words[i] >> 32;
        words[i] &= 0xffffffff;
      }
      if (words.back() >= 0) break;
      for (int64_t& word : words) word = -word;
    }
    std::reverse(words.begin(), words.end());
    return words;
  }

 private:
  std::array<int64_t, 11> words_ = {};
};

// |sum - x|, where infinity is what would be the next float32: 2^128.
std::array<int64_t, 11> Distance(Wide sum, float x) {
  if (std::isinf(x)) sum.Add(std::copysign(0x1p104f, x), -1);
  sum.Add(std::clamp(x, -kMostFloat, kMostFloat), -1);
  return sum.Size();
}

// None of its neighbours is nearer, and one as near is not even.
void ExpectNearest(const Vector& terms, float x) {
  Wide sum;
  for (const float term : terms) sum.Add(term, 1);
  const auto own = Distance(sum, x);
  for (const float to : {-kFloatInfinity, kFloatInfinity}) {
    const float next = std::nextafter(x, to);
    if (next == x) continue;
    const auto other = Distance(sum, next);
    EXPECT_FALSE(other < own) << x << " of " << terms.size() << " terms; " << next << " is nearer";
    EXPECT_TRUE(own < other || BitsOf(x) % 2 == 0) << x;
  }
  EXPECT_FALSE(x == 0 && std::signbit(x));
}

// What gradients look like and what they do not: term t of element i.
float Term(const std::string& kind, int64_t t, int64_t i) {
  const CounterRng rng(7, absl::StrCat(kind, "/", t));
  const float x = rng.Normal(i);
  if (kind == "normal") return 1e-3f * x;
  if (kind == "cancelling") {  // pairs of large ones and a small one that remains
    if (t == 0) return std::ldexp(x, -60);
    return (t % 2 == 0 ? -1.0f : 1.0f) * 1e20f *
           CounterRng(7, "big").Normal((t - 1) / 2 * 1000 + i);
  }
  if (kind == "subnormal") return x * 1e-39f;
  if (kind == "huge")
    return (rng.Bits(i) % 2 == 0 ? 1.0f : -1.0f) * kMostFloat * (1 - rng.Uniform(i));
  if (kind == "ties") {  // 24 bits, half of the last one, and what is far below that
    const int last = static_cast<int>(CounterRng(7, "last").Below(i, 253)) - 149;
    if (t == 0) return std::ldexp(static_cast<float>((1 << 23) + rng.Below(i, 4)), last);
    if (t == 1) return std::ldexp(x < 0 ? -1.0f : 1.0f, last - 1);
    return std::ldexp(static_cast<float>(rng.Below(i, 5)) - 2, last - 3 - 9 * static_cast<int>(t));
  }
  // Any bits but those of infinities and NaN.
  const uint32_t bits = rng.Bits(i);
  float any;
  std::memcpy(&any, &bits, sizeof(any));
  return std::isfinite(any) ? any : 0.0f;
}

const char* const kKinds[] = {"normal", "cancelling", "subnormal", "huge", "ties", "mixed"};

std::vector<Vector> Terms(const std::string& kind, int64_t count, int64_t values) {
  std::vector<Vector> terms(count, Vector(values));
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t i = 0; i < values; ++i) terms[t][i] = Term(kind, t, i);
  }
  return terms;
}

Vector Rounded(const OrderFreeSum& sum) {
  Vector result(sum.values());
  sum.Round(absl::MakeSpan(result));
  return result;
}

OrderFreeSum SumOf(const std::vector<Vector>& terms) {
  OrderFreeSum sum(terms[0].size());
  for (const Vector& term : terms) EXPECT_THAT(sum.Add(term), IsOk());
  return sum;
}

// In an order and a grouping by `seed`: some sums, some of them read from bytes, merged at random.
OrderFreeSum Shuffled(std::vector<Vector> terms, uint64_t seed) {
  const CounterRng rng(seed, "shuffle");
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.Below(draw++, n); };
  const auto values = static_cast<int64_t>(terms[0].size());
  std::vector<OrderFreeSum> groups(1 + below(6), OrderFreeSum(values));
  while (!terms.empty()) {
    std::swap(terms[below(terms.size())], terms.back());
    EXPECT_THAT(groups[below(groups.size())].Add(terms.back()), IsOk());
    terms.pop_back();
  }
  while (groups.size() > 1) {
    std::swap(groups[below(groups.size())], groups.back());
    auto from = OrderFreeSum::FromBytes(groups.back().ToBytes(), values);
    EXPECT_THAT(from, IsOk());
    groups.pop_back();
    EXPECT_THAT(groups[below(groups.size())].Merge(below(2) == 0 ? *from : *std::move(from)),
                IsOk());
  }
  return groups[0];
}

TEST(OrderFreeSum, NearestToTheExactSum) {
  for (const char* kind : kKinds) {
    SCOPED_TRACE(kind);
    for (const int64_t count : {1, 2, 9, 40}) {
      const std::vector<Vector> terms = Terms(kind, count, 150);
      const Vector sum = Rounded(SumOf(terms));
      for (size_t i = 0; i < sum.size(); ++i) {
        Vector of_element;
        for (const Vector& term : terms) of_element.push_back(term[i]);
        ExpectNearest(of_element, sum[i]);
        EXPECT_TRUE(count > 1 || sum[i] == terms[0][i]);
      }
    }
  }
}

TEST(OrderFreeSum, EveryOrderAndGroupingHasTheSameBits) {
  for (const char* kind : kKinds) {
    SCOPED_TRACE(kind);
    for (const int64_t values : {1, 63, 64, 65, 200}) {
      std::vector<Vector> terms = Terms(kind, 23, values);
      if (values == 65) {  // what is not finite as well
        terms[3][64] = kFloatInfinity;
        terms[9][64] = -kFloatInfinity;
        terms[5][7] = -kFloatNan;
      }
      const OrderFreeSum sum = SumOf(terms);
      const Vector rounded = Rounded(sum);
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const OrderFreeSum other = Shuffled(terms, seed);
        EXPECT_EQ(other.vectors(), 23);
        EXPECT_EQ(sum.ToBytes(), other.ToBytes());
        EXPECT_EQ(std::memcmp(rounded.data(), Rounded(other).data(), values * sizeof(float)), 0);
      }
    }
  }
}

TEST(OrderFreeSum, WhatIsNotFinite) {
  const Vector x = Rounded(SumOf(
      {{kFloatInfinity, -kFloatInfinity, kFloatInfinity, kFloatNan, -0.0f, kMostFloat, kMostFloat},
       {-kMostFloat, 1, -kFloatInfinity, kFloatInfinity, -0.0f, kMostFloat, kMostFloat},
       {1, kLeastFloat, 1, 1, 0.0f, -kMostFloat, 0}}));
  EXPECT_EQ(Vector(x.begin(), x.begin() + 2), Vector({kFloatInfinity, -kFloatInfinity}));
  for (const int i : {2, 3}) EXPECT_EQ(BitsOf(x[i]), 0x7fc00000u);
  EXPECT_EQ(BitsOf(x[4]), 0u);
  EXPECT_EQ(x[5], kMostFloat);  // the way led through more
  EXPECT_EQ(x[6], kFloatInfinity);
  // Half a unit above the largest, and the least below that.
  EXPECT_EQ(Rounded(SumOf({{kMostFloat, kMostFloat, -kMostFloat},
                           {0x1p103f, 0x1p103f, -0x1p103f},
                           {0, -kLeastFloat, 0}})),
            Vector({kFloatInfinity, kMostFloat, -kFloatInfinity}));
}

// Half a unit, and the least there is above and below it.
TEST(OrderFreeSum, TheLastBitDecides) {
  const Vector x = Rounded(SumOf({{0x1p100f, 0x1p100f, 0x1p100f},
                                  {0x1p76f, 0x1p76f, 0x1p76f},
                                  {0, kLeastFloat, -kLeastFloat}}));
  EXPECT_EQ(x, Vector({0x1p100f, 0x1.000002p100f, 0x1p100f}));
}

TEST(OrderFreeSum, AsManyVectorsAsThereIsRoomForAndNoMore) {
  const Vector x = {kMostFloat, kLeastFloat, -1, 0.75f};
  OrderFreeSum sum = SumOf({x});
  for (int i = 0; i < 22; ++i) EXPECT_THAT(sum.Merge(sum), IsOk());
  EXPECT_EQ(sum.vectors(), OrderFreeSum::kMostVectors);
  EXPECT_EQ(Rounded(sum),
            Vector({kFloatInfinity, 0x1p22f * kLeastFloat, -0x1p22f, 0.75f * 0x1p22f}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const OrderFreeSum read, OrderFreeSum::FromBytes(sum.ToBytes(), 4));
  EXPECT_EQ(Rounded(read), Rounded(sum));
  const std::string before = sum.ToBytes();
  const auto full = StatusIs(absl::StatusCode::kResourceExhausted,
                             "an order-free sum of 4194304 vectors cannot take 1 more; it takes "
                             "4194304");
  EXPECT_THAT(sum.Add(x), full);
  EXPECT_THAT(sum.Merge(SumOf({x})), full);
  EXPECT_EQ(sum.ToBytes(), before);
  // The largest sums of both signs cancel.
  OrderFreeSum up = SumOf({{kMostFloat}}), down = SumOf({{-kMostFloat}});
  for (int i = 0; i < 21; ++i) {
    EXPECT_THAT(up.Merge(up), IsOk());
    EXPECT_THAT(down.Merge(down), IsOk());
  }
  EXPECT_THAT(up.Merge(down), IsOk());
  EXPECT_EQ(BitsOf(Rounded(up)[0]), 0u);
}

TEST(OrderFreeSum, OtherSizesAreErrors) {
  OrderFreeSum sum(3);
  EXPECT_THAT(sum.Add({1, 2}), StatusIs(absl::StatusCode::kInvalidArgument,
                                        "a vector of 2 values for an order-free sum of 3"));
  EXPECT_THAT(sum.Merge(OrderFreeSum(4)), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   "an order-free sum of 4 values for one of 3"));
  EXPECT_EQ(sum.vectors(), 0);
  EXPECT_EQ(Rounded(sum), Vector(3));
  EXPECT_EQ(Rounded(SumOf({{}, {}})), Vector());
}

TEST(OrderFreeSum, BytesThatCannotBe) {
  const std::string good = SumOf({{1, 2, kFloatNan}, {3, -4, 0}}).ToBytes();
  ASSERT_EQ(good.size(), 16u + 3 + 3 * 8 + 3);
  const auto with = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return OrderFreeSum::FromBytes(bytes, 3).status();
  };
  const auto bad = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what));
  };
  EXPECT_THAT(OrderFreeSum::FromBytes(good, 3), IsOk());
  EXPECT_THAT(OrderFreeSum::FromBytes(good, 4), bad("3 values where 4 were expected"));
  EXPECT_THAT(with(15, -1), bad("vectors"));
  EXPECT_THAT(with(8, 0), bad("digits 3 + 1, mark 1 of block 0"));  // no vectors, yet digits
  EXPECT_THAT(with(16, 7), bad("digits 7 + 1"));
  EXPECT_THAT(with(17, 0), bad("digits 3 + 0"));
  EXPECT_THAT(with(17, 2), bad("cut short"));
  EXPECT_THAT(with(18, 2), bad("mark 2"));
  EXPECT_THAT(with(18, 0), bad("3 bytes too many"));
  EXPECT_THAT(with(19 + 6, 1), bad("a digit of block 0 is out of its range"));
  EXPECT_THAT(with(19 + 7, -128), bad("a digit of block 0 is out of its range"));
  EXPECT_THAT(with(good.size() - 1, 8), bad("mark 8"));
  EXPECT_THAT(with(good.size() - 1, 0), bad("mark 0"));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(OrderFreeSum::FromBytes(good.substr(0, size), 3),
                bad("bytes of an order-free sum"));
  }
  EXPECT_THAT(OrderFreeSum::FromBytes(good + "x", 3), bad("1 bytes too many"));
}

TEST(OrderFreeSum, MemoryFollowsTheRange) {
  EXPECT_LT(SumOf(Terms("normal", 40, 6400)).memory_bytes(), 6400 * 20);
  EXPECT_LT(SumOf(Terms("mixed", 40, 6400)).memory_bytes(), 6400 * 58);
}

}  // namespace
}  // namespace pipelab
