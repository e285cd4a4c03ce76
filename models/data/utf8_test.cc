#include "models/data/utf8.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Utf8, EveryCharacterAndBack) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = EncodeUtf8(c);
    ASSERT_EQ(text.size(), c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u);
    const auto back = DecodeUtf8(text);
    ASSERT_TRUE(back.ok() && back->size() == 1 && (*back)[0] == c) << c;
  }
}

TEST(Utf8, KnownBytes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto characters,
                               DecodeUtf8("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"));
  EXPECT_THAT(characters, ElementsAre('a', 0xE4, 0x20AC, 0x1F600));
  EXPECT_EQ(EncodeUtf8(0x110000), "\xEF\xBF\xBD");
  EXPECT_EQ(EncodeUtf8(0xD800), "\xEF\xBF\xBD");
}

TEST(Utf8, RefusesOtherBytes) {
  for (const char* bad : {"a\x80", "a\xC3", "a\xC3(", "a\xC0\xAF", "a\xE0\x80\xAF", "a\xED\xA0\x80",
                          "a\xF4\x90\x80\x80", "a\xF0\x9F\x98", "a\xFF"}) {
    EXPECT_THAT(DecodeUtf8(bad), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at 1")));
  }
}

}  // namespace
}  // namespace pipelab
