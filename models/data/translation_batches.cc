#include "models/data/translation_batches.h"

#include <algorithm>
#include <map>
#include <utility>

#include "glog/logging.h"
#include "models/data/utf8.h"

namespace pipelab {
namespace {

// Bytes that are no UTF-8 each become a character that no vocabulary has.
std::vector<uint32_t> CharactersOf(absl::string_view text) {
  auto characters = DecodeUtf8(text);
  if (characters.ok()) return *std::move(characters);
  return std::vector<uint32_t>(text.size(), 0xFFFFFFFF);
}

int64_t SourceTokens(const Translation& t) {
  return static_cast<int64_t>(CharactersOf(t.source).size()) + 2;
}
int64_t TargetTokens(const Translation& t) {
  return static_cast<int64_t>(CharactersOf(t.target).size()) + 1;
}

}  // namespace

TranslationVocabulary::TranslationVocabulary(const TranslationCorpus& corpus, int64_t least_count)
    : first_character_(kFirstLocale + static_cast<int32_t>(corpus.locales.size())) {
  std::map<uint32_t, int64_t> counts;
  for (const Translation& t : corpus.translations) {
    for (const std::string* text : {&t.source, &t.target}) {
      for (const uint32_t c : CharactersOf(*text)) ++counts[c];
    }
  }
  for (const auto& [character, count] : counts) {
    if (count < least_count || character == 0xFFFFFFFF) continue;
    token_of_[character] = first_character_ + static_cast<int32_t>(characters_.size());
    characters_.push_back(character);
  }
}

std::vector<int32_t> TranslationVocabulary::Encode(absl::string_view text) const {
  std::vector<int32_t> tokens;
  for (const uint32_t c : CharactersOf(text)) {
    const auto it = token_of_.find(c);
    tokens.push_back(it == token_of_.end() ? static_cast<int32_t>(kUnknown) : it->second);
  }
  return tokens;
}

std::string TranslationVocabulary::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token == kEnd) break;
    if (token == kUnknown) text += EncodeUtf8(0xFFFD);
    if (token < first_character_ || token >= size()) continue;
    text += EncodeUtf8(characters_[token - first_character_]);
  }
  return text;
}

TranslationData MakeTranslationData(const TranslationCorpus& corpus,
                                    const TranslationOptions& options) {
  TranslationSplit split = SplitTranslations(corpus);
  TranslationData data;
  data.name = corpus.name;
  for (TranslationCorpus* part : {&split.train, &split.held_out}) {
    std::vector<Translation>& all = part->translations;
    const auto end = std::remove_if(all.begin(), all.end(), [&](const Translation& t) {
      return SourceTokens(t) > options.source_length || TargetTokens(t) > options.target_length;
    });
    data.too_long += all.end() - end;
    all.erase(end, all.end());
  }
  data.vocabulary = std::make_shared<const TranslationVocabulary>(split.train, options.least_count);
  data.train = std::make_shared<const TranslationCorpus>(std::move(split.train));
  data.held_out = std::make_shared<const TranslationCorpus>(std::move(split.held_out));
  return data;
}

TranslationBatchSource::TranslationBatchSource(
    std::shared_ptr<const TranslationCorpus> corpus,
    std::shared_ptr<const TranslationVocabulary> vocabulary, const TranslationOptions& options,
    ExampleOrder order)
    : ExampleSource({{kSource, FieldType::kId, {options.source_length}, vocabulary->size()},
                     {kSourceMask, FieldType::kFloat, {options.source_length}},
                     {kTokens, FieldType::kId, {options.target_length}, vocabulary->size()},
                     {kTargets, FieldType::kId, {options.target_length}, vocabulary->size()},
                     {kTargetsMask, FieldType::kFloat, {options.target_length}}},
                    std::move(order)),
      corpus_(std::move(corpus)),
      vocabulary_(std::move(vocabulary)) {
  CHECK_EQ(examples(), static_cast<int64_t>(corpus_->translations.size()));
  for (const Translation& t : corpus_->translations) {
    CHECK(SourceTokens(t) <= options.source_length && TargetTokens(t) <= options.target_length)
        << "too long: " << t.source;
  }
}

std::vector<int32_t> TranslationBatchSource::TokensOf(int field, int64_t example) const {
  const Translation& t = corpus_->translations[example];
  const bool source = field == kSourceField || field == kSourceMaskField;
  std::vector<int32_t> tokens = vocabulary_->Encode(source ? t.source : t.target);
  if (field == kTokensField) {
    tokens.insert(tokens.begin(), TranslationVocabulary::kStart);
    return tokens;
  }
  if (source) tokens.insert(tokens.begin(), vocabulary_->LocaleToken(t.locale));
  tokens.push_back(TranslationVocabulary::kEnd);
  return tokens;
}

void TranslationBatchSource::WriteFloats(int field, const Draw& draw, absl::Span<float> out) const {
  const size_t n = TokensOf(field, draw.example).size();
  std::fill(out.begin(), out.begin() + n, 1.0f);
  std::fill(out.begin() + n, out.end(), 0.0f);
}

void TranslationBatchSource::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  const std::vector<int32_t> tokens = TokensOf(field, draw.example);
  const auto end = std::copy(tokens.begin(), tokens.end(), out.begin());
  std::fill(end, out.end(), static_cast<int32_t>(TranslationVocabulary::kPadding));
}

}  // namespace pipelab
