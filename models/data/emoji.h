// Emoji: a small picture of each, its names in 107 languages, and which of 9 groups it is in. Two
// inputs that tell of one thing, for networks with an image and a text branch.
//
//   PIPELAB_ASSIGN_OR_RETURN(EmojiData data, FetchEmoji(DefaultDataCache()));
//
// From Debian's packages fonts-noto-color-emoji (pictures; OFL-1.1), unicode-data and
// unicode-cldr-core (groups and names; Unicode's licence). Taken are the fully-qualified emoji of
// one character (U+FE0F aside) that the font has, 1,377, and the languages that name at least
// kLeastNames of them.
// Split: by a hash of the character, so that no held-out emoji is seen in training under any name.
// Errors: see package_cache.h, emoji_font.h and emoji_names.h.
#ifndef PIPELAB_MODELS_DATA_EMOJI_H_
#define PIPELAB_MODELS_DATA_EMOJI_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/images.h"
#include "models/data/package_cache.h"

namespace pipelab {

constexpr int64_t kEmojiSide = 32;
constexpr int64_t kLeastNames = 1000;

struct EmojiName {
  int32_t emoji;   // place in EmojiSet::images
  int32_t locale;  // place in EmojiData::locales
  std::string text;
};

struct EmojiSet {
  LabelledImages images;         // kEmojiSide square, RGB on white; labels are groups
  std::vector<EmojiName> names;  // by emoji, then locale
};

struct EmojiData {
  std::string name;                  // "emoji", "synthetic"
  std::vector<std::string> groups;   // by label: "Smileys & Emotion", ...
  std::vector<std::string> locales;  // "de", "en_001", ..., sorted
  EmojiSet train, held_out;
};

const DebianPackage& EmojiFontPackage();
const DebianPackage& UnicodeDataPackage();
const DebianPackage& CldrPackage();

// From the unpacked packages. `least_names`: see above; tests have fewer emoji.
absl::StatusOr<EmojiData> LoadEmoji(absl::string_view font_dir, absl::string_view unicode_dir,
                                    absl::string_view cldr_dir, int64_t least_names = kLeastNames);

// From the cache, or through apt into the cache.
absl::StatusOr<EmojiData> FetchEmoji(absl::string_view cache_dir, const FetchOptions& options = {});

// Group 3 a + b, where only the picture tells a, and only the name b: neither alone can be right in
// more than a third of all cases.
EmojiData SyntheticEmoji(int64_t train, int64_t held_out, uint64_t seed);

// One character in five, by StableHash of its UTF-8.
bool IsHeldOutEmoji(absl::string_view utf8);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_H_
