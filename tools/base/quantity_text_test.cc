#include "tools/base/quantity_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

template <typename Q>
Q ParsedQuantity(absl::string_view text) {
  const absl::StatusOr<Q> q = ParseQuantity<Q>(text);
  EXPECT_THAT(q, IsOk());
  return q.value_or(Q());
}

TEST(QuantityText, Units) {
  EXPECT_EQ(ParsedQuantity<FlopsPerSecond>("125 Tflop/s").value(), 125e12);
  EXPECT_EQ(ParsedQuantity<FlopsPerSecond>("15.7Tflop/s").value(), 15.7e12);
  for (const char* peak : {"125 TFLOPS", "125 TFLOP/s", "125 TFLOPs/s", "125 Tflops"}) {
    EXPECT_EQ(ParsedQuantity<FlopsPerSecond>(peak).value(), 125e12) << peak;
  }
  EXPECT_EQ(ParsedQuantity<Flops>("2.5 GFLOP").value(), 2.5e9);
  // A bit is an eighth of a byte, however it is written.
  for (const char* rate : {"100 Gbit/s", "100 Gb/s", "100 Gbps", "12.5 GB/s"}) {
    EXPECT_EQ(ParsedQuantity<BytesPerSecond>(rate).value(), 12.5e9) << rate;
  }
  EXPECT_EQ(ParsedQuantity<FlopsPerSecond>("3 flop/s").value(), 3);
  EXPECT_EQ(ParsedQuantity<Flops>("2 Eflop").value(), 2e18);
  EXPECT_EQ(ParsedQuantity<Bytes>("16 GiB"), Bytes(int64_t{16} << 30));
  EXPECT_EQ(ParsedQuantity<Bytes>("16 GB"), Bytes(16000000000));
  EXPECT_EQ(ParsedQuantity<Bytes>("1.5 KiB"), Bytes(1536));
  EXPECT_EQ(ParsedQuantity<Bytes>("0 B"), Bytes(0));
  EXPECT_EQ(ParsedQuantity<BytesPerSecond>("25 GB/s").value(), 25e9);
  EXPECT_EQ(ParsedQuantity<BytesPerSecond>("2 GiB/s").value(), 2.0 * (1 << 30));
  EXPECT_EQ(ParsedQuantity<Nanoseconds>("5 us"), Nanoseconds(5000));
  EXPECT_EQ(ParsedQuantity<Nanoseconds>("1.5e-3 s"), Nanoseconds(1500000));
  EXPECT_EQ(ParsedQuantity<Nanoseconds>("1 ns"), Nanoseconds(1));
  EXPECT_EQ(ParsedQuantity<Nanoseconds>("0.4 ns"), Nanoseconds(0));
}

TEST(QuantityText, WhatUnitsPrintIsRead) {
  EXPECT_EQ(ParsedQuantity<Bytes>(ToString(Bytes(int64_t{3} << 40))), Bytes(int64_t{3} << 40));
  EXPECT_EQ(ParsedQuantity<Nanoseconds>(ToString(Nanoseconds(25000))), Nanoseconds(25000));
  EXPECT_EQ(ParsedQuantity<BytesPerSecond>(ToString(BytesPerSecond(900e9))), BytesPerSecond(900e9));
  EXPECT_EQ(ParsedQuantity<FlopsPerSecond>(ToString(FlopsPerSecond(312e12))),
            FlopsPerSecond(312e12));
  EXPECT_EQ(ParsedQuantity<Flops>(ToString(Flops(7e9))), Flops(7e9));
}

template <typename Q>
std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<Q> q = ParseQuantity<Q>(text);
  EXPECT_FALSE(q.ok()) << text;
  EXPECT_THAT(std::string(q.status().message()), HasSubstr(absl::StrCat("\"", text, "\"")));
  return std::string(q.status().message());
}

TEST(QuantityText, Errors) {
  EXPECT_EQ(ErrorOf<BytesPerSecond>("25"),
            "\"25\": the unit is missing; must be a number and a unit, such as \"25 GB/s\"");
  EXPECT_THAT(ErrorOf<BytesPerSecond>("25 GB"), HasSubstr("\"GB\" is not a unit here"));
  EXPECT_THAT(ErrorOf<Bytes>("25 GB/s"), HasSubstr("not a unit"));
  EXPECT_THAT(ErrorOf<Bytes>("4 Gb"), HasSubstr("not a unit"));
  EXPECT_THAT(ErrorOf<FlopsPerSecond>("125 TOPS"), HasSubstr("such as \"125 Tflop/s\""));
  EXPECT_THAT(ErrorOf<Nanoseconds>("5 min"), HasSubstr("not a unit"));
  EXPECT_THAT(ErrorOf<Nanoseconds>("-5 us"), HasSubstr("must be finite and not negative"));
  EXPECT_THAT(ErrorOf<Nanoseconds>("1e30 s"), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf<Bytes>("9223372036854775808 B"), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf<FlopsPerSecond>("1e400 flop/s"), HasSubstr("must be"));
  for (const char* text : {"", " ", "GB", "x GB", "nan GB", "inf GB", "1  GB", "1.2.3 GB", "- GB",
                           "1 GB ", "1 G B", "0x10 GB", "1e GB", "1e+ GB"}) {
    ErrorOf<Bytes>(text);
  }
}

}  // namespace
}  // namespace pipelab
