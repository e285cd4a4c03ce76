// .mo files written by hand: both byte orders, contexts and plurals, truncation, wild offsets.
#include "models/data/gettext_mo.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/mo_test_writer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string SampleMo(bool big = false) {
  return MoFile({{"", "Language: de\n"},
                 {"Germany", "Deutschland"},
                 {std::string("language\4Thai"), "Thail\xC3\xA4ndisch"},
                 {std::string("dog\0dogs", 8), std::string("Hund\0Hunde", 10)}},
                big);
}

std::string PatchWord(std::string bytes, size_t at, uint32_t word) {
  return bytes.replace(at, 4, MoWord(word, false));
}

TEST(Mo, ReadsBothByteOrders) {
  for (const bool big : {false, true}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto entries, ParseMo(SampleMo(big), "f"));
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].id, "");
    EXPECT_EQ(entries[1].id, "Germany");
    EXPECT_EQ(entries[1].translation, "Deutschland");
    EXPECT_EQ(entries[2].id, "Thai");
    EXPECT_EQ(entries[2].translation, "Thail\xC3\xA4ndisch");
    EXPECT_EQ(entries[3].id, "dog");
    EXPECT_EQ(entries[3].translation, "Hund");
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto none, ParseMo(MoFile({}), "f"));
  EXPECT_TRUE(none.empty());
}

TEST(Mo, ReadsFiles) {
  const std::string path = JoinPath(testing::TempDir(), "x.mo");
  ASSERT_THAT(WriteFileAtomically(path, SampleMo()), IsOk());
  EXPECT_THAT(ReadMo(path), IsOk());
  EXPECT_THAT(ReadMo("/no/such.mo"), StatusIs(absl::StatusCode::kNotFound, StartsWith("/no/such")));
}

TEST(Mo, EveryTruncationNamesFileAndByte) {
  for (size_t n = 0; n < SampleMo().size(); ++n) {
    EXPECT_THAT(ParseMo(SampleMo().substr(0, n), "dir/f.mo"),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("dir/f.mo: byte ")))
        << n;
  }
}

TEST(Mo, DamageIsNamed) {
  const auto expect = [](const std::string& bytes, const char* words) {
    EXPECT_THAT(ParseMo(bytes, "f"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  expect(PatchWord(SampleMo(), 0, 0x12345678),
         "f: byte 0: magic number 0x12345678; a .mo file starts");
  expect(PatchWord(SampleMo(), 4, 0x20000), "f: byte 4: revision 2");
  expect(PatchWord(SampleMo(), 8, 0xFFFFFFFF),
         "f: byte 28: table of originals of 34359738360 bytes");
  expect(PatchWord(SampleMo(), 12, 0xFFFFFFF0), "f: byte 4294967280: table of originals");
  expect(PatchWord(SampleMo(), 16, 0x7FFFFFFF), "f: byte 2147483647: table of translations");
  expect(PatchWord(SampleMo(), 36, 0x10000), "string of 65537 bytes");  // a length beyond the file
  expect(PatchWord(SampleMo(), 40, 0xFFFFFFFF),
         "byte 4294967295: string of");  // an offset beyond it
  expect(PatchWord(SampleMo(), 36, 3), "string without a zero byte");
}

TEST(Mo, OverlappingStringsCostNoMemory) {
  // 1000 entries that all point to one string of 1000 bytes.
  std::string bytes = MoFile(std::vector<std::pair<std::string, std::string>>(1000));
  const uint32_t at = static_cast<uint32_t>(bytes.size());
  bytes += std::string(1000, 'x') + '\0';
  for (size_t i = 0; i < 2000; ++i) {
    bytes = PatchWord(PatchWord(std::move(bytes), 28 + 8 * i, 1000), 32 + 8 * i, at);
  }
  EXPECT_THAT(ParseMo(bytes, "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("strings overlap")));
}

}  // namespace
}  // namespace pipelab
