// IDX files written by hand: whole, gzipped, truncated, with lengths beyond the file.
#include "models/data/idx.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/r_test_writer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string SampleIdx() {
  return std::string(
      "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
      "abcdef",
      18);
}

TEST(Idx, ReadsDimensionsAndBytes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const IdxArray a, ParseIdx(SampleIdx(), "f"));
  EXPECT_THAT(a.dimensions, ElementsAre(2, 3));
  EXPECT_EQ(a.bytes, "abcdef");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const IdxArray packed, ParseIdx(ZlibOf(SampleIdx()), "f"));
  EXPECT_EQ(packed.bytes, "abcdef");
  const std::string empty("\0\0\x08\x02\0\0\0\0\0\0\0\x03", 12);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const IdxArray none, ParseIdx(empty, "f"));
  EXPECT_THAT(none.dimensions, ElementsAre(0, 3));
}

TEST(Idx, ReadsFiles) {
  const std::string path = JoinPath(testing::TempDir(), "x.idx");
  ASSERT_THAT(WriteFileAtomically(path, SampleIdx()), IsOk());
  EXPECT_THAT(ReadIdx(path), IsOk());
  EXPECT_THAT(ReadIdx("/no/such.idx"),
              StatusIs(absl::StatusCode::kNotFound, StartsWith("/no/such.idx")));
}

TEST(Idx, EveryTruncationNamesFileAndByte) {
  for (size_t n = 0; n < SampleIdx().size(); ++n) {
    EXPECT_THAT(ParseIdx(SampleIdx().substr(0, n), "dir/f.idx"),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("dir/f.idx: byte ")))
        << n;
  }
  EXPECT_THAT(
      ParseIdx(SampleIdx().substr(0, 17), "f"),
      StatusIs(absl::StatusCode::kDataLoss, "f: byte 12: 5 numbers follow; the dimensions say 6"));
  EXPECT_THAT(ParseIdx(SampleIdx() + "g", "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("7 numbers follow")));
}

TEST(Idx, WrongMagicAndTypes) {
  for (const char* magic : {"\1\0\x08\x02", "\0\1\x08\x02", "\0\0\x08\0", "\0\0\x08\x09"}) {
    EXPECT_THAT(ParseIdx(std::string(magic, 4) + SampleIdx().substr(4), "f"),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("f: byte 0: magic number")));
  }
  EXPECT_THAT(ParseIdx(std::string("\0\0\x0D\x02", 4) + SampleIdx().substr(4), "f"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("type 0x0d")));
}

TEST(Idx, LengthsBeyondTheFile) {
  std::string bytes = SampleIdx();
  bytes.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_THAT(ParseIdx(bytes, "f"),
              StatusIs(absl::StatusCode::kDataLoss,
                       "f: byte 4: 2 dimensions with at least 1 x 4294967295 numbers; the file has "
                       "18 bytes"));
  bytes = SampleIdx();
  bytes.replace(8, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_THAT(ParseIdx(bytes, "f"), StatusIs(absl::StatusCode::kDataLoss, StartsWith("f: byte 8")));
  EXPECT_THAT(ParseIdx(ZlibOf(SampleIdx()), "f", 17), StatusIs(absl::StatusCode::kOutOfRange, _));
}

}  // namespace
}  // namespace pipelab
