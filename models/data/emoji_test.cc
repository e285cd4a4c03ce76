// Emoji: pictures and names of made packages and the real ones, the split, batches.
// The real ones, where they are in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/emoji.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/emoji_batches.h"
#include "models/data/emoji_test_writer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void WriteEmojiFile(const std::string& root, const std::string& path, const std::string& bytes) {
  const std::string whole = JoinPath(root, path);
  ASSERT_THAT(MakeDirectories(whole.substr(0, whole.rfind('/'))), IsOk());
  ASSERT_THAT(WriteFileAtomically(whole, bytes), IsOk());
}

std::string Names(const std::vector<std::string>& names) {
  std::string xml = "<ldml>";
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string cp =
        absl::StrCat("\xF0\x9F\x98", std::string(1, static_cast<char>(0x80 + i)));
    absl::StrAppend(&xml, "<annotation cp=\"", cp, "\" type=\"tts\">", names[i], "</annotation>");
  }
  return xml + "</ldml>";
}

// Three packages in one folder: U+1F600 to U+1F603 with pictures, U+1F604 without.
std::string FakePackages(const std::string& font) {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "emoji-"));
  WriteEmojiFile(root, "usr/share/fonts/truetype/noto/NotoColorEmoji.ttf", font);
  WriteEmojiFile(
      root, "usr/share/unicode/emoji/emoji-test.txt",
      "# group: A\n1F600 ; fully-qualified # x E1.0 one\n1F601 ; fully-qualified # x E1.0 two\n"
      "1F601 1F602 ; fully-qualified # x E1.0 both\n"
      "# group: B\n1F602 ; fully-qualified # x E1.0 three\n1F603 ; unqualified # x E1.0 four\n"
      "1F603 FE0F ; fully-qualified # x E1.0 four\n1F604 ; fully-qualified # x E1.0 five\n");
  const std::string annotations = "usr/share/unicode/cldr/common/annotations/";
  WriteEmojiFile(root, annotations + "en.xml", Names({"one", "two", "three", "four", "five"}));
  WriteEmojiFile(root, annotations + "de.xml", Names({"eins", "zwei", "drei"}));
  WriteEmojiFile(root, annotations + "fr.xml", Names({"un"}));
  return root;
}

std::string FourPictures() {
  std::vector<std::string> pngs;
  for (uint8_t i = 0; i < 4; ++i) pngs.push_back(PlainPng(10 * i, 0, 0, 255, 64, 64));
  return FontOf(0x1F600, pngs);
}

TEST(Emoji, PicturesNamesGroupsAndSplit) {
  const std::string root = FakePackages(FourPictures());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const EmojiData data, LoadEmoji(root, root, root, 3));
  EXPECT_EQ(data.name, "emoji");
  EXPECT_THAT(data.groups, ElementsAre("A", "B"));
  EXPECT_THAT(data.locales, ElementsAre("de", "en"));
  EXPECT_EQ(data.train.images.size() + data.held_out.images.size(), 4);
  EXPECT_EQ(data.train.names.size() + data.held_out.names.size(), 7u);
  std::set<std::string> seen;
  for (const EmojiSet* set : {&data.train, &data.held_out}) {
    EXPECT_EQ(set->images.pixels.size(), static_cast<size_t>(set->images.size() * 32 * 32 * 3));
    for (const EmojiName& name : set->names) {
      const int colour = set->images.pixels[name.emoji * 32 * 32 * 3];
      seen.insert(absl::StrCat(name.text, " ", data.locales[name.locale], " ", colour, " ",
                               set->images.labels[name.emoji]));
    }
  }
  EXPECT_THAT(seen, ElementsAre("drei de 20 1", "eins de 0 0", "four en 30 1", "one en 0 0",
                                "three en 20 1", "two en 10 0", "zwei de 10 0"));
}

TEST(Emoji, DamageIsNamed) {
  const auto expect = [](const std::string& root, int64_t least, const char* words) {
    EXPECT_THAT(LoadEmoji(root, root, root, least),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  expect(FakePackages("rubbish!"), 1, "NotoColorEmoji.ttf: byte 0: magic");
  std::string torn = FourPictures();
  torn[torn.find("IDAT") + 6] ^= 0x55;
  expect(FakePackages(torn), 1, "NotoColorEmoji.ttf: U+1F600: damaged PNG");
  expect(FakePackages(FourPictures()), 5, "annotations: no file names 5 of the font's emoji");
  const std::string root = FakePackages(FourPictures());
  WriteEmojiFile(root, "usr/share/unicode/cldr/common/annotations/xx.xml", "<ldml><annotation ");
  expect(root, 1, "xx.xml: byte 0: no whole <ldml>");
  EXPECT_FALSE(LoadEmoji("/no/such", "/no/such", "/no/such").ok());
}

TEST(SyntheticEmoji, IsSteady) {
  const EmojiData a = SyntheticEmoji(300, 50, 1), b = SyntheticEmoji(300, 50, 1);
  EXPECT_EQ(a.name, "synthetic");
  EXPECT_EQ(a.train.images.pixels, b.train.images.pixels);
  EXPECT_EQ(a.held_out.images.size(), 50);
  EXPECT_EQ(a.held_out.names[7].text, b.held_out.names[7].text);
  std::array<int, 9> seen = {};
  for (const uint8_t label : a.train.images.labels) ++seen[label];
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 15);
}

TEST(EmojiBatchSource, KeepLocales) {
  const std::string root = FakePackages(FourPictures());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const EmojiData data, LoadEmoji(root, root, root, 1));
  size_t names = 0;
  for (const EmojiSet* set : {&data.train, &data.held_out}) {
    for (const EmojiName& name : KeepLocales(data, *set, {"fr", "en", "zz"}).names) {
      EXPECT_NE(data.locales[name.locale], "de");
      ++names;
    }
  }
  EXPECT_EQ(names, 5u);
}

TEST(Emoji, RealPackages) {
  std::vector<std::string> dirs;
  for (const DebianPackage* p : {&EmojiFontPackage(), &UnicodeDataPackage(), &CldrPackage()}) {
    const auto dir = FindDebianPackage(*p, DefaultDataCache());
    if (absl::IsNotFound(dir.status())) {
      GTEST_SKIP() << dir.status().message() << "; see the top of this file";
    }
    ASSERT_THAT(dir, IsOk());
    dirs.push_back(*dir);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const EmojiData data, LoadEmoji(dirs[0], dirs[1], dirs[2]));
  EXPECT_EQ(data.train.images.size() + data.held_out.images.size(), 1377);
  EXPECT_EQ(data.locales.size(), 107u);
  EXPECT_EQ(data.groups.size(), 9u);
  const double share = static_cast<double>(data.held_out.images.size()) / 1377;
  EXPECT_NEAR(share, 0.2, 0.04);
  std::set<uint8_t> held_out(data.held_out.images.labels.begin(),
                             data.held_out.images.labels.end());
  EXPECT_GE(held_out.size(), 8u);
  // Nearly every language names nearly every emoji.
  EXPECT_GT(data.train.names.size() + data.held_out.names.size(), 107u * 1300);
  EXPECT_LT(NameVocabulary(data, EmojiOptions()).end(), 6000);
}

}  // namespace
}  // namespace pipelab
