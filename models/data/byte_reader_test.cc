// Numbers in both orders at every edge; parts of parts keep the file's own byte count.
#include "models/data/byte_reader.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::StrEq;

const std::string& SampleBytes() {
  static const auto& bytes = *new std::string("\x01\x02\x03\x84\x05", 5);
  return bytes;
}

TEST(FileByteReader, BothOrders) {
  const FileByteReader big(SampleBytes(), "f", ByteOrder::kBig),
      little(SampleBytes(), "f", ByteOrder::kLittle);
  EXPECT_EQ(*big.U32(0), 0x01020384u);
  EXPECT_EQ(*little.U32(0), 0x84030201u);
  EXPECT_EQ(*big.U16(2), 0x0384u);
  EXPECT_EQ(*little.U16(2), 0x8403u);
  EXPECT_EQ(*big.U8(4), 5u);
}

TEST(FileByteReader, NothingBeyondTheEnd) {
  const FileByteReader r(SampleBytes(), "f", ByteOrder::kBig);
  EXPECT_THAT(r.U32(1), IsOk());
  EXPECT_THAT(r.U32(2),
              StatusIs(absl::StatusCode::kDataLoss,
                       StrEq("f: byte 2: a number of 4 bytes; this part ends at byte 5")));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t offset :
       {int64_t{-1}, int64_t{5}, kMost, std::numeric_limits<int64_t>::min()}) {
    EXPECT_FALSE(r.U8(offset).ok()) << offset;
    EXPECT_FALSE(r.U16(offset).ok()) << offset;
    EXPECT_FALSE(r.U32(offset).ok()) << offset;
  }
  EXPECT_THAT(r.Slice(5, 0, "tail"), IsOk());
  EXPECT_FALSE(r.Slice(0, 6, "x").ok());
  EXPECT_FALSE(r.Slice(3, kMost, "x").ok());
  EXPECT_FALSE(r.Slice(-1, 2, "x").ok());
  EXPECT_FALSE(r.Slice(2, -1, "x").ok());
  EXPECT_FALSE(r.From(6, "x").ok());
  EXPECT_FALSE(r.From(std::numeric_limits<int64_t>::min(), "x").ok());
  EXPECT_FALSE(FileByteReader("", "f", ByteOrder::kBig).U8(0).ok());
}

TEST(FileByteReader, PartsCountFromTheFilesStart) {
  const FileByteReader r(SampleBytes(), "f", ByteOrder::kBig);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FileByteReader part, r.Slice(1, 3, "part"));
  EXPECT_EQ(part.size(), 3);
  EXPECT_EQ(*part.U8(0), 2u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FileByteReader inner, part.From(1, "inner"));
  EXPECT_EQ(*inner.U16(0), 0x0384u);
  EXPECT_THAT(inner.U16(1),
              StatusIs(absl::StatusCode::kDataLoss,
                       StrEq("f: byte 3: a number of 2 bytes; this part ends at byte 4")));
  EXPECT_THAT(inner.Slice(1, 9, "names"),
              StatusIs(absl::StatusCode::kDataLoss,
                       StrEq("f: byte 3: names of 9 bytes; this part ends at byte 4")));
  EXPECT_THAT(inner.Error(0, "bad"),
              StatusIs(absl::StatusCode::kDataLoss, StrEq("f: byte 2: bad")));
}

}  // namespace
}  // namespace pipelab
