#include "models/data/emoji.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/emoji_font.h"
#include "models/data/emoji_names.h"
#include "models/data/folder.h"
#include "models/data/png.h"
#include "models/data/utf8.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Names = std::map<std::string, std::string>;  // UTF-8 of the character -> name

constexpr uint64_t kHeldOutEmojiOneIn = 5;
constexpr int64_t kTextLimit = int64_t{16} << 20;

struct Single {  // an emoji of one character
  std::string utf8;
  int32_t group;
  std::vector<uint8_t> pixels;
};

LabelledImages EmptyImages(int64_t groups) {
  LabelledImages images;
  images.height = images.width = kEmojiSide;
  images.channels = 3;
  images.classes = groups;
  return images;
}

// Those that the font has; `groups` gets the groups in the file's order.
absl::StatusOr<std::vector<Single>> ReadPictures(const std::string& font_path,
                                                 const std::string& list_path,
                                                 std::vector<std::string>* groups) {
  PIPELAB_ASSIGN_OR_RETURN(const EmojiFont font, EmojiFont::Read(font_path));
  PIPELAB_ASSIGN_OR_RETURN(const std::string list, ReadFile(list_path, kTextLimit));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<EmojiEntry> entries, ParseEmojiTest(list, list_path));
  std::vector<Single> singles;
  for (const EmojiEntry& entry : entries) {
    if (entry.characters.size() != 1) continue;
    const auto png = font.Png(entry.characters[0]);
    if (absl::IsNotFound(png.status())) continue;
    PIPELAB_RETURN_IF_ERROR(png.status());
    PIPELAB_ASSIGN_OR_RETURN(
        const PngImage picture,
        DecodePng(*png, absl::StrFormat("%s: U+%04X", font_path, entry.characters[0])));
    auto group = std::find(groups->begin(), groups->end(), entry.group);
    if (group == groups->end()) group = groups->insert(group, entry.group);
    singles.push_back({EncodeUtf8(entry.characters[0]),
                       static_cast<int32_t>(group - groups->begin()),
                       ScaleOnWhite(picture, kEmojiSide)});
  }
  return singles;
}

// Locale -> names, of the locales that name enough of these emoji.
absl::StatusOr<std::map<std::string, Names>> ReadNames(const std::string& dir,
                                                       const std::vector<Single>& singles,
                                                       int64_t least_names) {
  std::map<std::string, Names> locales;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(dir, ".xml"));
  for (const std::string& file : files) {
    const std::string path = JoinPath(dir, file);
    PIPELAB_ASSIGN_OR_RETURN(const std::string xml, ReadFile(path, kTextLimit));
    PIPELAB_ASSIGN_OR_RETURN(Names names, ParseAnnotations(xml, path));
    int64_t named = 0;
    for (const Single& s : singles) named += names.count(s.utf8);
    if (named >= least_names) locales[file.substr(0, file.rfind('.'))] = std::move(names);
  }
  return locales;
}

void Add(const std::vector<uint8_t>& pixels, int32_t group, EmojiSet* set) {
  set->images.pixels.insert(set->images.pixels.end(), pixels.begin(), pixels.end());
  set->images.labels.push_back(static_cast<uint8_t>(group));
}

// A disc, a square or a ring of a random colour and place.
std::vector<uint8_t> DrawShape(const CounterRng& rng, uint64_t shape) {
  std::vector<uint8_t> pixels;
  const double cy = 12 + 8 * rng.Uniform(1), cx = 12 + 8 * rng.Uniform(2),
               r = 6 + 4 * rng.Uniform(3);
  for (int64_t i = 0; i < kEmojiSide * kEmojiSide; ++i) {
    const int64_t row = i / kEmojiSide;
    const double y = static_cast<double>(row) - cy;
    const double x = static_cast<double>(i % kEmojiSide) - cx;
    const double round = std::sqrt(y * y + x * x), square = std::max(std::abs(y), std::abs(x));
    const bool inside = shape == 0   ? round < r
                        : shape == 1 ? square < r
                                     : round < r && round > r / 2;
    for (uint64_t c = 0; c < 3; ++c) {
      pixels.push_back(inside ? static_cast<uint8_t>(rng.Below(4 + c, 200)) : 255);
    }
  }
  return pixels;
}

}  // namespace

bool IsHeldOutEmoji(absl::string_view utf8) { return StableHash(utf8) % kHeldOutEmojiOneIn == 0; }

const DebianPackage& EmojiFontPackage() {
  static const auto& package =
      *new DebianPackage{"fonts-noto-color-emoji", "2.042-0+deb12u1",
                         "a5ab0f69c7938423862320d9aca5dd187b3fd879d6a9a57dd52e17c3fa8d2751"};
  return package;
}

const DebianPackage& UnicodeDataPackage() {
  static const auto& package =
      *new DebianPackage{"unicode-data", "15.0.0-1",
                         "5efef23bbb1c6a133ecbdd63a2cfa07159ccacf5466a49e2426101c5ecd691fc"};
  return package;
}

const DebianPackage& CldrPackage() {
  static const auto& package =
      *new DebianPackage{"unicode-cldr-core", "41-0.1",
                         "35d30d5d3bee4d8244e95236259c4c2a0db06e21bad696515751fcfeee4d0260"};
  return package;
}

absl::StatusOr<EmojiData> LoadEmoji(absl::string_view font_dir, absl::string_view unicode_dir,
                                    absl::string_view cldr_dir, int64_t least_names) {
  EmojiData data;
  data.name = "emoji";
  PIPELAB_ASSIGN_OR_RETURN(
      const std::vector<Single> singles,
      ReadPictures(JoinPath(font_dir, "usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"),
                   JoinPath(unicode_dir, "usr/share/unicode/emoji/emoji-test.txt"), &data.groups));
  const std::string names_dir = JoinPath(cldr_dir, "usr/share/unicode/cldr/common/annotations");
  PIPELAB_ASSIGN_OR_RETURN(const auto locales, ReadNames(names_dir, singles, least_names));
  if (locales.empty()) {
    return absl::DataLossError(
        absl::StrCat(names_dir, ": no file names ", least_names, " of the font's emoji"));
  }
  for (const auto& entry : locales) data.locales.push_back(entry.first);
  const int64_t groups = static_cast<int64_t>(data.groups.size());
  data.train.images = data.held_out.images = EmptyImages(groups);
  for (const Single& s : singles) {
    EmojiSet* set = IsHeldOutEmoji(s.utf8) ? &data.held_out : &data.train;
    const auto emoji = static_cast<int32_t>(set->images.size());
    Add(s.pixels, s.group, set);
    int32_t locale = 0;
    for (const auto& [locale_name, names] : locales) {
      const auto name = names.find(s.utf8);
      if (name != names.end() && !name->second.empty())
        set->names.push_back({emoji, locale, name->second});
      ++locale;
    }
  }
  return data;
}

absl::StatusOr<EmojiData> FetchEmoji(absl::string_view cache_dir, const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string font,
                           FetchDebianPackage(EmojiFontPackage(), cache_dir, options));
  PIPELAB_ASSIGN_OR_RETURN(const std::string unicode,
                           FetchDebianPackage(UnicodeDataPackage(), cache_dir, options));
  PIPELAB_ASSIGN_OR_RETURN(const std::string cldr,
                           FetchDebianPackage(CldrPackage(), cache_dir, options));
  return LoadEmoji(font, unicode, cldr);
}

EmojiData SyntheticEmoji(int64_t train, int64_t held_out, uint64_t seed) {
  constexpr absl::string_view kSyllables[3] = {"badagama", "fisivizi", "lorotomo"};
  EmojiData data;
  data.name = "synthetic";
  data.locales = {"xa"};
  for (int g = 0; g < 9; ++g) data.groups.push_back(absl::StrCat("group ", g));
  data.train.images = data.held_out.images = EmptyImages(9);
  for (int64_t i = 0; i < train + held_out; ++i) {
    const CounterRng rng(seed, absl::StrCat("data/synthetic/emoji", i));
    const uint64_t a = rng.Below(8, 3), b = rng.Below(9, 3);
    EmojiSet* set = i < train ? &data.train : &data.held_out;
    EmojiName name = {static_cast<int32_t>(set->images.size()), 0, ""};
    for (uint64_t k = 0; k < 3 + rng.Below(10, 3); ++k) {
      // Two of three syllables are the row's own.
      const uint64_t row = rng.Below(20 + 3 * k, 3) == 0 ? rng.Below(21 + 3 * k, 3) : b;
      absl::StrAppend(&name.text, kSyllables[row].substr(2 * rng.Below(22 + 3 * k, 4), 2));
    }
    Add(DrawShape(rng, a), static_cast<int32_t>(3 * a + b), set);
    set->names.push_back(std::move(name));
  }
  return data;
}

}  // namespace pipelab
