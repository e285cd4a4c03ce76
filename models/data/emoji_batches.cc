#include "models/data/emoji_batches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr uint8_t kWhite = 255;
constexpr int32_t kUnknown = 1, kFirstGram = 2;

enum EmojiField { kImageField, kTextField, kTextLengthField, kLabelField };

std::vector<DataField> EmojiFields(const LabelledImages& images,
                                   const CharacterVocabulary& vocabulary,
                                   const EmojiOptions& options) {
  return {ImageField(images, options.channels_last),
          {kText, FieldType::kId, {options.text_length}, TextIds(vocabulary, options)},
          {kTextLength, FieldType::kId, {1}, options.text_length + 1},
          {kTargets, FieldType::kId, {1}, images.classes}};
}

// The number of the n-gram of characters that ends at `end`.
int32_t NgramAt(const std::vector<int32_t>& characters, size_t end, const EmojiOptions& options) {
  const size_t n = static_cast<size_t>(options.ngram), begin = end + 1 > n ? end + 1 - n : 0;
  const std::string key =
      absl::StrJoin(characters.begin() + begin, characters.begin() + end + 1, ",");
  return kFirstGram + static_cast<int32_t>(StableHash(absl::StrCat(begin == 0 ? "^" : "", key)) %
                                           static_cast<uint64_t>(options.ngram_rows));
}

}  // namespace

int64_t TextIds(const CharacterVocabulary& vocabulary, const EmojiOptions& options) {
  return options.ngram == 1 ? vocabulary.end() : kFirstGram + options.ngram_rows;
}

CharacterVocabulary NameVocabulary(const EmojiData& data, const EmojiOptions& options) {
  CharacterVocabulary::Counter counter;
  for (const EmojiName& name : data.train.names) counter.Add(name.text);
  return counter.Vocabulary(kFirstGram, kUnknown, options.least_count);
}

EmojiSet KeepLocales(const EmojiData& data, const EmojiSet& set,
                     const std::vector<std::string>& locales) {
  const std::set<std::string> wanted(locales.begin(), locales.end());
  EmojiSet kept;
  kept.images = set.images;
  for (const EmojiName& name : set.names) {
    if (wanted.count(data.locales[name.locale]) > 0) kept.names.push_back(name);
  }
  return kept;
}

EmojiSet SelectEmoji(const EmojiSet& set, const std::vector<bool>& kept) {
  CHECK_EQ(static_cast<int64_t>(kept.size()), set.images.size());
  EmojiSet out = set;
  out.images.pixels.clear();
  out.images.labels.clear();
  out.names.clear();
  std::vector<int32_t> place(kept.size(), -1);
  const int64_t bytes = set.images.image_bytes();
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    place[i] = static_cast<int32_t>(out.images.size());
    const auto from = set.images.pixels.begin() + static_cast<int64_t>(i) * bytes;
    out.images.pixels.insert(out.images.pixels.end(), from, from + bytes);
    out.images.labels.push_back(set.images.labels[i]);
  }
  for (EmojiName name : set.names) {
    name.emoji = place[name.emoji];
    if (name.emoji >= 0) out.names.push_back(std::move(name));
  }
  return out;
}

EmojiBatchSource::EmojiBatchSource(EmojiSet set, const PixelScale& scale,
                                   std::shared_ptr<const CharacterVocabulary> vocabulary,
                                   const EmojiOptions& options, ExampleOrder order)
    : ExampleSource(EmojiFields(set.images, *vocabulary, options), std::move(order)),
      set_(std::move(set)),
      value_(PixelValues(scale)),
      vocabulary_(std::move(vocabulary)),
      options_(options) {
  CHECK_EQ(examples(), static_cast<int64_t>(set_.names.size()));
}

EmojiBatchSource::Input EmojiBatchSource::BlankOf(const Draw& draw) const {
  if (options_.blank == 0) return Input::kNone;
  const CounterRng rng(order().seed(), absl::StrCat(order().part(), "/blank/step", draw.step));
  const double u = rng.Uniform(static_cast<uint64_t>(draw.sample));
  if (u >= options_.blank) return Input::kNone;
  return 2 * u < options_.blank ? Input::kImage : Input::kText;
}

std::vector<int32_t> EmojiBatchSource::TokensOf(const Draw& draw) const {
  if (BlankOf(draw) == Input::kText) return {kUnknown};
  std::vector<int32_t> tokens = WholeTokensOf(draw.example);
  if (options_.mask == 0) return tokens;
  const CounterRng rng(order().seed(), absl::StrCat(order().part(), "/mask/step", draw.step));
  const uint64_t first = static_cast<uint64_t>(draw.sample * options_.text_length);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (rng.Uniform(first + i) < options_.mask) tokens[i] = kUnknown;
  }
  return tokens;
}

std::vector<int32_t> EmojiBatchSource::WholeTokensOf(int64_t example) const {
  std::vector<int32_t> characters = vocabulary_->Encode(set_.names[example].text);
  characters.resize(std::min(characters.size(), static_cast<size_t>(options_.text_length)));
  if (options_.ngram == 1) return characters;
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < characters.size(); ++i) {
    tokens.push_back(NgramAt(characters, i, options_));
  }
  return tokens;
}

void EmojiBatchSource::WriteFloats(int, const Draw& draw, absl::Span<float> out) const {
  if (BlankOf(draw) == Input::kImage) {
    std::fill(out.begin(), out.end(), value_[kWhite]);
    return;
  }
  ImagePlacement placement = DrawPlacement(options_.augmentation, order(), draw.step, draw.sample);
  placement.background = kWhite;
  WriteImage(set_.images, set_.names[draw.example].emoji, placement, options_.channels_last, value_,
             out);
}

void EmojiBatchSource::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  if (field == kLabelField) {
    out[0] = set_.images.labels[set_.names[draw.example].emoji];
    return;
  }
  const std::vector<int32_t> tokens = TokensOf(draw);
  if (field == kTextLengthField) {
    out[0] = static_cast<int32_t>(tokens.size());
    return;
  }
  std::fill(std::copy(tokens.begin(), tokens.end(), out.begin()), out.end(), 0);
}

}  // namespace pipelab
