// The emoji font, pictures and names, all written by hand: whole, truncated, damaged.
#include "models/data/emoji_font.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/emoji_names.h"
#include "models/data/emoji_test_writer.h"
#include "models/data/png.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string Font() {
  return FontOf(0x1F600, {PlainPng(255, 0, 0, 255, 2, 2), PlainPng(0, 0, 255, 255, 2, 2)});
}

std::string PatchAtText(std::string bytes, const std::string& from, const std::string& to,
                        int skip = 0) {
  size_t at = bytes.find(from);
  for (; skip > 0; --skip) at = bytes.find(from, at + 1);
  EXPECT_NE(at, std::string::npos);
  return bytes.replace(at, to.size(), to);
}

TEST(EmojiFont, FindsPictures) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const EmojiFont font, EmojiFont::Parse(Font(), "f"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const absl::string_view red, font.Png(0x1F600));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const absl::string_view blue, font.Png(0x1F601));
  EXPECT_EQ(red, PlainPng(255, 0, 0, 255, 2, 2));
  EXPECT_EQ(blue, PlainPng(0, 0, 255, 255, 2, 2));
  for (const uint32_t other : {0x1F5FFu, 0x1F602u, 0x41u}) {
    EXPECT_THAT(font.Png(other), StatusIs(absl::StatusCode::kNotFound, HasSubstr("f: no picture")));
  }
}

TEST(EmojiFont, EveryTruncationIsAnErrorWithFileAndByte) {
  const std::string whole = Font();
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THAT(EmojiFont::Parse(whole.substr(0, n), "dir/f.ttf"),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("dir/f.ttf: byte ")))
        << n;
  }
}

TEST(EmojiFont, DamageIsNamed) {
  const auto expect = [](const std::string& bytes, absl::StatusCode code, const char* words) {
    EXPECT_THAT(EmojiFont::Parse(bytes, "f"), StatusIs(code, HasSubstr(words)));
  };
  expect("\x89PNGxxxx", absl::StatusCode::kDataLoss, "f: byte 0: magic number 0x89504e47");
  expect(PatchAtText(Font(), "CBLC", "XXXX"), absl::StatusCode::kDataLoss,
         "f: byte 4: no table CBLC");
  expect(PatchAtText(Font(), Big(12, 2) + Big(0, 2) + Big(28, 4), Big(13, 2)),
         absl::StatusCode::kUnimplemented, "no subtable of format 12");
  expect(PatchAtText(Font(), Big(0x1F600, 4), Big(0x11F600, 4)), absl::StatusCode::kDataLoss,
         "characters 0x11f600 to 0x1f601");
  expect(PatchAtText(Font(), Big(1, 4) + Big(0x1F600, 4), Big(0xFFFFFFF, 4)),
         absl::StatusCode::kDataLoss, "cmap groups of 3221225460 bytes");
  expect(PatchAtText(Font(), Big(1, 2) + Big(17, 2), Big(3, 2)), absl::StatusCode::kUnimplemented,
         "CBLC index format 3; 1 can be read");
  expect(PatchAtText(Font(), Big(1, 2) + Big(17, 2), Big(1, 2) + Big(18, 2)),
         absl::StatusCode::kUnimplemented, "CBDT image format 18; 17 can be read");
  expect(PatchAtText(Font(), Big(56, 4) + Big(0, 4) + Big(1, 4) + Big(0, 4), Big(0xFFFFFF00, 4)),
         absl::StatusCode::kDataLoss, "index subtable array of 8 bytes");
}

TEST(EmojiFont, PicturesBeyondTheTable) {
  const std::string png = PlainPng(255, 0, 0, 255, 2, 2);
  const std::string length = Big(static_cast<uint32_t>(png.size()), 4) + png;
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const EmojiFont longer,
      EmojiFont::Parse(PatchAtText(Font(), length, Big(0x7FFFFFFF, 4)), "f"));
  EXPECT_THAT(longer.Png(0x1F600),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("PNG of 2147483647 bytes")));
  const std::string offset = Big(static_cast<uint32_t>(png.size()) + 9, 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const EmojiFont beyond,
      EmojiFont::Parse(PatchAtText(Font(), offset, Big(0x01000000, 4)), "f"));
  EXPECT_THAT(beyond.Png(0x1F600), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("picture of")));
  EXPECT_THAT(beyond.Png(0x1F601), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("picture of")));
}

TEST(DecodePng, PixelsAndErrors) {
  const std::vector<uint8_t> rgba = {1, 2, 3, 255, 4, 5, 6, 128, 7, 8, 9, 0, 10, 11, 12, 255};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PngImage picture, DecodePng(PngOf(rgba, 2), "p"));
  EXPECT_EQ(picture.width, 2);
  EXPECT_EQ(picture.height, 2);
  EXPECT_EQ(picture.rgba, rgba);
  const std::string whole = PlainPng(9, 8, 7, 255, 20, 20);
  for (size_t n = 0; n < whole.size() - 12; ++n) {  // the last 12 bytes only say that it ends
    EXPECT_THAT(DecodePng(whole.substr(0, n), "p"),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("p: damaged PNG: ")))
        << n;
  }
  EXPECT_THAT(DecodePng(whole, "p", 400), IsOk());
  EXPECT_THAT(DecodePng(whole, "p", 399),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("20 x 20 pixels")));
}

// They may unpack to a thousand times as many bytes as the picture has.
TEST(DecodePng, CompressedBytesHaveALimit) {
  std::string png = PlainPng(9, 8, 7, 255, 20, 20);
  const size_t last = png.size() - 12;  // IEND
  png.insert(last, Big(80000, 4) + "IDAT" + std::string(80004, '\0'));
  EXPECT_THAT(
      DecodePng(png, "p"),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(StartsWith("p: 80"), HasSubstr(" bytes of compressed pixels; a picture "
                                                    "of 20 x 20 pixels has at most 72736"))));
}

TEST(ScaleOnWhite, MeansOfAreas) {
  PngImage p;
  p.width = p.height = 2;
  p.rgba = {255, 0, 0, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 51};
  EXPECT_THAT(ScaleOnWhite(p, 2), ElementsAre(255, 0, 0, 0, 0, 0, 255, 255, 255, 204, 204, 204));
  // Red, black, clear and a fifth of black: red (255 + 0 + 255 + 204) / 4, others (0 + 0 + 255 +
  // 204) / 4.
  EXPECT_THAT(ScaleOnWhite(p, 1), ElementsAre(179, 115, 115));
  const std::vector<uint8_t> larger = ScaleOnWhite(p, 4);
  EXPECT_EQ(larger.size(), 48u);
  EXPECT_EQ(larger[5 * 3], 255);
  EXPECT_EQ(larger[5 * 3 + 1], 0);
}

TEST(ScaleOnWhite, OblongPicturesStandInTheMiddle) {
  PngImage p;
  p.width = 4;
  p.height = 2;
  for (int i = 0; i < 8; ++i) p.rgba.insert(p.rgba.end(), {0, 0, 0, 255});
  const std::vector<uint8_t> out = ScaleOnWhite(p, 4);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) EXPECT_EQ(out[(y * 4 + x) * 3], y == 1 || y == 2 ? 0 : 255);
  }
  const std::vector<uint8_t> three = ScaleOnWhite(p, 3);  // rows cover 4/3: a quarter of the first
  EXPECT_EQ(three[0], 191);
  EXPECT_EQ(three[9], 0);
}

const char* EmojiTestText() {
  return "# emoji-test.txt\n\n# group: Smileys & Emotion\n# subgroup: face\n"
         "1F600      ; fully-qualified     # \xF0\x9F\x98\x80 E1.0 grinning face\n"
         "263A FE0F  ; fully-qualified     # x E0.6 smiling face\n"
         "263A       ; unqualified         # x E0.6 smiling face\n"
         "# group: Symbols\n"
         "0023 FE0F 20E3 ; fully-qualified # x E0.6 keycap: #\n";
}

TEST(EmojiTest, Entries) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto entries, ParseEmojiTest(EmojiTestText(), "f"));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_THAT(entries[0].characters, ElementsAre(0x1F600));
  EXPECT_EQ(entries[0].group, "Smileys & Emotion");
  EXPECT_EQ(entries[0].name, "grinning face");
  EXPECT_THAT(entries[1].characters, ElementsAre(0x263A));
  EXPECT_THAT(entries[2].characters, ElementsAre(0x23, 0x20E3));
  EXPECT_EQ(entries[2].name, "keycap: #");
  EXPECT_EQ(entries[2].group, "Symbols");
}

TEST(EmojiTest, DamageIsNamed) {
  const auto expect = [](const std::string& text, const char* words) {
    EXPECT_THAT(ParseEmojiTest(text, "f"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  expect("", "f: byte 0: no fully-qualified emoji");
  expect("1F600 ; fully-qualified # x E1.0 y", "f: byte 0: an emoji before the first group");
  expect("# group: a\n1F600 grinning\n", "f: byte 11: no ';' and '#'");
  expect("# group: a\n1F6G0 ; fully-qualified # x E1.0 y\n", "f: byte 11: '1F6G0' is no character");
  expect("# group: a\n110000 ; fully-qualified # x E1.0 y\n", "is no character");
  expect("# group: a\n1F600 ; fully-qualified # x\n", "f: byte 11: no characters, or no name");
}

TEST(Annotations, NamesAndEntities) {
  const std::string xml =
      "<?xml?>\n<ldml><annotations>\n<annotation cp=\"&amp;\">and | et</annotation>\n"
      "<annotation cp=\"&amp;\" type=\"tts\">am&lt;per&gt;&quot;s&apos;&#x41;&#66;</annotation>\n"
      "<annotation cp=\"x\" type=\"tts\" draft=\"contributed\">first</annotation>\n"
      "<!-- <annotation cp=\"y\" type=\"tts\">none</annotation> -->\n"
      "<annotation cp=\"x\" type=\"tts\">second</annotation>\n</annotations></ldml>";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto names, ParseAnnotations(xml, "f"));
  EXPECT_EQ(names.size(), 2u);
  EXPECT_EQ(names.at("&"), "am<per>\"s'AB");
  EXPECT_EQ(names.at("x"), "first");
}

TEST(Annotations, DamageIsNamed) {
  const auto expect = [](const std::string& xml, const char* words) {
    EXPECT_THAT(ParseAnnotations(xml, "f"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  expect("rubbish", "f: byte 0: no whole <ldml> element");
  expect("<ldml><annotation cp=\"x\"", "no whole <ldml>");
  expect("<ldml></ldml><annotation cp=\"x\" type=\"tts\">a",
         "f: byte 13: <annotation> without an end");
  expect("<ldml><annotation cp=\"x\" type=\"tts\">a&b</annotation></ldml>",
         "byte 37: '&' without ';'");
  expect("<ldml><annotation cp=\"x\" type=\"tts\">&foo;</annotation></ldml>", "entity '&foo;'");
  expect("<ldml></ldml><!-- <annotation cp=\"x\">", "byte 13: comment without an end");
  expect("<ldml><annotation type=\"tts\">a</annotation></ldml>", "byte 6: <annotation> without cp");
}

}  // namespace
}  // namespace pipelab
