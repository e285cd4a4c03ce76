#include "models/data/emoji_batches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "glog/logging.h"

namespace pipelab {
namespace {

enum Field { kImageField, kTextField, kTextLengthField, kTargetsField };

std::vector<DataField> FieldsOf(const LabelledImages& images, const CharacterVocabulary& vocabulary,
                                const EmojiOptions& options) {
  return {ImageField(images, options.channels_last),
          {kText, FieldType::kId, {options.text_length}, vocabulary.end()},
          {kTextLength, FieldType::kId, {1}, options.text_length + 1},
          {kTargets, FieldType::kId, {1}, images.classes}};
}

}  // namespace

CharacterVocabulary NameVocabulary(const EmojiData& data, const EmojiOptions& options) {
  CharacterVocabulary::Counter counter;
  for (const EmojiName& name : data.train.names) counter.Add(name.text);
  return counter.Vocabulary(/*first=*/2, /*unknown=*/1, options.least_count);
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

EmojiBatchSource::EmojiBatchSource(EmojiSet set, const PixelScale& scale,
                                   std::shared_ptr<const CharacterVocabulary> vocabulary,
                                   const EmojiOptions& options, ExampleOrder order)
    : ExampleSource(FieldsOf(set.images, *vocabulary, options), std::move(order)),
      set_(std::move(set)),
      value_(PixelValues(scale)),
      vocabulary_(std::move(vocabulary)),
      options_(options) {
  CHECK_EQ(examples(), static_cast<int64_t>(set_.names.size()));
}

std::vector<int32_t> EmojiBatchSource::TokensOf(int64_t example) const {
  std::vector<int32_t> tokens = vocabulary_->Encode(set_.names[example].text);
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(options_.text_length)));
  return tokens;
}

void EmojiBatchSource::WriteFloats(int, const Draw& draw, absl::Span<float> out) const {
  WriteImage(set_.images, set_.names[draw.example].emoji, ImagePlacement(), options_.channels_last,
             value_, out);
}

void EmojiBatchSource::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  if (field == kTargetsField) {
    out[0] = set_.images.labels[set_.names[draw.example].emoji];
    return;
  }
  const std::vector<int32_t> tokens = TokensOf(draw.example);
  if (field == kTextLengthField) {
    out[0] = static_cast<int32_t>(tokens.size());
    return;
  }
  std::fill(std::copy(tokens.begin(), tokens.end(), out.begin()), out.end(), 0);
}

}  // namespace pipelab
