// Batches of emoji: fields, n-grams, and what is drawn at random in training.
#include "models/data/emoji_batches.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

TEST(EmojiBatchSource, FieldsOfASample) {
  EmojiData data = SyntheticEmoji(40, 10, 1);
  data.train.names[3].text =
      "ab\xF0\x9F\x98\x80"
      "abababab";
  EmojiOptions options;
  options.text_length = 7;
  options.least_count = 2;
  const auto vocabulary =
      std::make_shared<const CharacterVocabulary>(NameVocabulary(data, options));
  const EmojiBatchSource source(data.train, ScaleOf(data.train.images), vocabulary, options,
                                ExampleOrder(40));
  EXPECT_EQ(source.Field(kImage), (DataField{kImage, FieldType::kFloat, {32, 32, 3}}));
  EXPECT_EQ(source.Field(kTargets).limit, 9);
  std::vector<int32_t> text(7), group(40);
  std::vector<int32_t> length(1);
  source.FillIds(source.FindField(kText), 0, 3, absl::MakeSpan(text));
  const int32_t a = vocabulary->Encode("a")[0], b = vocabulary->Encode("b")[0];
  EXPECT_GE(a, 2);
  EXPECT_THAT(text, ElementsAre(a, b, 1, a, b, a, b));  // cut at 7
  source.FillIds(source.FindField(kText), 0, 0, absl::MakeSpan(text));
  source.FillIds(source.FindField(kTextLength), 0, 0, absl::MakeSpan(length));
  const size_t n = std::min<size_t>(data.train.names[0].text.size(), 7);
  EXPECT_EQ(length[0], static_cast<int32_t>(n));
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(text[i] != 0, i < n);
  source.FillIds(source.FindField(kTargets), 0, 0, absl::MakeSpan(group));
  EXPECT_TRUE(std::equal(group.begin(), group.end(), data.train.images.labels.begin()));
}

// A source of 40 synthetic emoji whose steps have each once.
EmojiBatchSource SyntheticSource(const EmojiOptions& options, uint64_t seed = 1) {
  const EmojiData data = SyntheticEmoji(40, 10, 1);
  return EmojiBatchSource(
      data.train, ScaleOf(data.train.images),
      std::make_shared<const CharacterVocabulary>(NameVocabulary(data, EmojiOptions())), options,
      ExampleOrder(40, 40, seed, "data"));
}

std::vector<int32_t> Ids(const EmojiBatchSource& source, const char* field, int64_t step) {
  const int f = source.FindField(field);
  std::vector<int32_t> ids(40 * source.Field(field).size());
  source.FillIds(f, step, 0, absl::MakeSpan(ids));
  return ids;
}

std::vector<float> Pictures(const EmojiBatchSource& source, int64_t step) {
  std::vector<float> pictures(40 * 32 * 32 * 3);
  source.FillFloats(source.FindField(kImage), step, 0, absl::MakeSpan(pictures));
  return pictures;
}

// Equal n-grams have equal numbers, and nearly only those.
TEST(EmojiBatchSource, Ngrams) {
  EmojiData data = SyntheticEmoji(2, 1, 1);
  data.train.names[0].text = "abcabcxbc";
  data.train.names[1].text = "bcabc";
  EmojiOptions options;
  options.text_length = 9;
  options.least_count = 1;
  options.ngram = 3;
  options.ngram_rows = 1000003;
  const auto vocabulary =
      std::make_shared<const CharacterVocabulary>(NameVocabulary(data, options));
  const EmojiBatchSource source(data.train, ScaleOf(data.train.images), vocabulary, options,
                                ExampleOrder(2));
  EXPECT_EQ(source.Field(kText).limit, 1000005);
  std::vector<int32_t> a(9), b(9);
  source.FillIds(source.FindField(kText), 0, 0, absl::MakeSpan(a));
  source.FillIds(source.FindField(kText), 0, 1, absl::MakeSpan(b));
  // ^a ^ab ^abc bca cab abc bcx cxb xbc; ^b ^bc ^bca cab abc. A start is another n-gram.
  EXPECT_EQ(b[3], a[4]);
  EXPECT_EQ(b[4], a[5]);
  EXPECT_NE(a[2], a[5]);
  EXPECT_NE(b[2], a[3]);
  EXPECT_EQ(std::set<int32_t>(a.begin(), a.end()).size(), 9u);
  EXPECT_GE(*std::min_element(a.begin(), a.end()), 2);
  EXPECT_THAT(std::vector<int32_t>(b.begin() + 5, b.end()), ElementsAre(0, 0, 0, 0));
}

TEST(EmojiBatchSource, MasksAShareOfTheTokens) {
  EmojiOptions plain, masked;
  masked.mask = 0.3;
  const EmojiBatchSource a = SyntheticSource(plain), b = SyntheticSource(masked);
  int tokens = 0, hidden = 0;
  for (int64_t step = 0; step < 20; ++step) {
    const auto whole = Ids(a, kText, step), part = Ids(b, kText, step);
    EXPECT_EQ(part, Ids(SyntheticSource(masked), kText, step));
    EXPECT_EQ(Ids(a, kTextLength, step), Ids(b, kTextLength, step));
    for (size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] == 0 || whole[i] == 1) continue;
      ++tokens;
      hidden += part[i] == 1;
      EXPECT_TRUE(part[i] == 1 || part[i] == whole[i]);
    }
  }
  ASSERT_GT(tokens, 1000);
  EXPECT_NEAR(static_cast<double>(hidden) / tokens, 0.3, 4 * std::sqrt(0.21 / tokens));
}

// One input goes, never both, each as often; the target stays.
TEST(EmojiBatchSource, BlanksOneInput) {
  EmojiOptions plain, blank;
  blank.blank = 0.5;
  const EmojiBatchSource a = SyntheticSource(plain), b = SyntheticSource(blank);
  const int64_t pixels = 32 * 32 * 3;
  int pictures = 0, names = 0;
  for (int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(Ids(a, kTargets, step), Ids(b, kTargets, step));
    const auto whole = Pictures(a, step), part = Pictures(b, step);
    const auto text = Ids(b, kText, step), length = Ids(b, kTextLength, step);
    const auto whole_text = Ids(a, kText, step);
    const float white = *std::max_element(whole.begin(), whole.end());
    for (int64_t s = 0; s < 40; ++s) {
      const auto* picture = part.data() + s * pixels;
      const bool no_picture =
          std::all_of(picture, picture + pixels, [&](float p) { return p == white; });
      const bool no_name = length[s] == 1 && text[s * 24] == 1;
      EXPECT_FALSE(no_picture && no_name);
      pictures += no_picture;
      names += no_name;
      if (!no_picture) {
        EXPECT_TRUE(std::equal(picture, picture + pixels, whole.data() + s * pixels));
      }
      if (!no_name) {
        EXPECT_TRUE(std::equal(text.begin() + s * 24, text.begin() + (s + 1) * 24,
                               whole_text.begin() + s * 24));
      }
    }
  }
  EXPECT_NEAR(pictures / 800.0, 0.25, 4 * std::sqrt(0.1875 / 800));
  EXPECT_NEAR(names / 800.0, 0.25, 4 * std::sqrt(0.1875 / 800));
}

TEST(EmojiBatchSource, ShiftsOnWhite) {
  EmojiOptions plain, moved;
  moved.augmentation = {4, false};
  const EmojiBatchSource source = SyntheticSource(moved);
  const auto whole = Pictures(SyntheticSource(plain), 0), part = Pictures(source, 0);
  EXPECT_NE(whole, part);
  const float white = *std::max_element(whole.begin(), whole.end());
  EXPECT_EQ(white, *std::max_element(part.begin(), part.end()));
  // Black, which the pictures do not have, does not come in.
  EXPECT_GE(*std::min_element(part.begin(), part.end()),
            *std::min_element(whole.begin(), whole.end()));
}

TEST(SelectEmoji, KeepsNamesWithTheirPictures) {
  const EmojiData data = SyntheticEmoji(5, 1, 1);
  EmojiSet set = data.train;
  set.names.push_back({3, 0, "again"});
  const EmojiSet kept = SelectEmoji(set, {false, true, false, true, false});
  EXPECT_THAT(kept.images.labels, ElementsAre(set.images.labels[1], set.images.labels[3]));
  ASSERT_EQ(kept.images.pixels.size(), 2u * 32 * 32 * 3);
  EXPECT_TRUE(std::equal(kept.images.pixels.begin() + 32 * 32 * 3, kept.images.pixels.end(),
                         set.images.pixels.begin() + 3 * 32 * 32 * 3));
  ASSERT_EQ(kept.names.size(), 3u);
  EXPECT_EQ(kept.names[0].text, set.names[1].text);
  EXPECT_EQ(kept.names[0].emoji, 0);
  EXPECT_EQ(kept.names[1].text, set.names[3].text);
  EXPECT_EQ(kept.names[2].text, "again");
  EXPECT_EQ(kept.names[2].emoji, 1);
}

}  // namespace
}  // namespace pipelab
