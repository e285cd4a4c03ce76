#include "models/data/translation_batches.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "models/data/utf8.h"

namespace pipelab {
namespace {

enum TranslationField { kSourceField, kSourceLengthField, kTokensField, kTargetsField };

CharacterVocabulary CharactersIn(const TranslationCorpus& corpus, int64_t least_count) {
  CharacterVocabulary::Counter counter;
  for (const Translation& t : corpus.translations) {
    counter.Add(t.source);
    counter.Add(t.target);
  }
  const auto locales = static_cast<int32_t>(corpus.locales.size());
  return counter.Vocabulary(TranslationVocabulary::kFirstLocale + locales,
                            TranslationVocabulary::kUnknown, least_count);
}

int64_t SourceTokens(const Translation& t) {
  return static_cast<int64_t>(CharactersOf(t.source).size()) + 2;
}
int64_t TargetTokens(const Translation& t) {
  return static_cast<int64_t>(CharactersOf(t.target).size()) + 1;
}

}  // namespace

TranslationVocabulary::TranslationVocabulary(const TranslationCorpus& corpus, int64_t least_count)
    : characters_(CharactersIn(corpus, least_count)) {}

std::string TranslationVocabulary::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token == kEnd) break;
    if (token == kUnknown) text += EncodeUtf8(0xFFFD);
    if (token >= characters_.first() && token < size()) text += characters_.TextOf(token);
  }
  return text;
}

TranslationData MakeTranslationData(const TranslationCorpus& corpus,
                                    const TranslationOptions& options) {
  return MakeTranslationData(SplitTranslations(corpus), options);
}

TranslationData MakeTranslationData(TranslationSplit split, const TranslationOptions& options) {
  TranslationData data;
  data.name = split.train.name;
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

std::vector<DataField> TranslationFields(const TranslationVocabulary& vocabulary,
                                         const TranslationOptions& options) {
  return {{kSource, FieldType::kId, {options.source_length}, vocabulary.size()},
          {kSourceLength, FieldType::kId, {1}, options.source_length + 1},
          {kTokens, FieldType::kId, {options.target_length}, vocabulary.size()},
          {kTargets, FieldType::kId, {options.target_length}, vocabulary.size(), true}};
}

std::vector<int32_t> SourceOf(const TranslationVocabulary& vocabulary, const Translation& t) {
  std::vector<int32_t> tokens = vocabulary.Encode(t.source);
  tokens.insert(tokens.begin(), vocabulary.LocaleToken(t.locale));
  tokens.push_back(TranslationVocabulary::kEnd);
  return tokens;
}

TranslationBatchSource::TranslationBatchSource(
    std::shared_ptr<const TranslationCorpus> corpus,
    std::shared_ptr<const TranslationVocabulary> vocabulary, const TranslationOptions& options,
    ExampleOrder order)
    : ExampleSource(TranslationFields(*vocabulary, options), std::move(order)),
      corpus_(std::move(corpus)),
      vocabulary_(std::move(vocabulary)) {
  CHECK_EQ(examples(), static_cast<int64_t>(corpus_->translations.size()));
  for (const Translation& t : corpus_->translations) {
    CHECK(SourceTokens(t) <= options.source_length && TargetTokens(t) <= options.target_length)
        << "too long: " << t.source;
  }
}

void TranslationBatchSource::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  using V = TranslationVocabulary;
  const Translation& t = corpus_->translations[draw.example];
  std::vector<int32_t> tokens;
  int32_t padding = V::kPadding;
  switch (field) {
    case kSourceLengthField:
      out[0] = static_cast<int32_t>(SourceTokens(t));
      return;
    case kSourceField:
      tokens = SourceOf(*vocabulary_, t);
      break;
    case kTokensField:
      tokens = vocabulary_->Encode(t.target);
      tokens.insert(tokens.begin(), V::kStart);
      break;
    default:
      tokens = vocabulary_->Encode(t.target);
      tokens.push_back(V::kEnd);
      padding = kNoData;
  }
  std::fill(std::copy(tokens.begin(), tokens.end(), out.begin()), out.end(), padding);
}

}  // namespace pipelab
