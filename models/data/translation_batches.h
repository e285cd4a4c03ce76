// Batches of translations for an encoder-decoder; a token is a character.
//
//   TranslationOptions options;                            // lengths, how rare a character may be
//   TranslationData data = MakeTranslationData(corpus, options);
//   TranslationBatchSource train(data.train, data.vocabulary, options,
//                                ExampleOrder(data.train->translations.size(), 64, seed, "data"));
//
// Fields (S, T: the lengths of the options):
//   "source" [S]         the locale's token, the English characters, kEnd, kPadding
//   "source_length" [1]  how many of these are no padding
//   "tokens" [T]         what the decoder reads: kStart, the translation's characters, kPadding
//   "targets" [T]        what it must say: the characters, kEnd, kNoData
#ifndef PIPELAB_MODELS_DATA_TRANSLATION_BATCHES_H_
#define PIPELAB_MODELS_DATA_TRANSLATION_BATCHES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/data/character_vocabulary.h"
#include "models/data/example_source.h"
#include "models/data/translations.h"
#include "models/graph/translation_fields.h"  // IWYU pragma: export

namespace pipelab {

// Special tokens, one for each locale, then the characters by code point.
class TranslationVocabulary {
 public:
  enum Special : int32_t { kPadding, kStart, kEnd, kUnknown, kFirstLocale };

  // Characters that the corpus has at least `least_count` times, in sources and targets.
  TranslationVocabulary(const TranslationCorpus& corpus, int64_t least_count);

  int64_t size() const { return characters_.end(); }
  int32_t LocaleToken(int32_t locale) const { return kFirstLocale + locale; }
  // Characters alone; kUnknown for one that the vocabulary lacks, or a byte that is no UTF-8.
  std::vector<int32_t> Encode(absl::string_view text) const { return characters_.Encode(text); }
  // Up to kEnd; other special tokens are left out, and U+FFFD stands for kUnknown.
  std::string Decode(absl::Span<const int32_t> tokens) const;

 private:
  const CharacterVocabulary characters_;
};

struct TranslationOptions {
  int64_t source_length = 40;  // S: with the locale's token and kEnd
  int64_t target_length = 48;  // T: with kEnd
  int64_t least_count = 5;     // of a character in the training part
};

struct TranslationData {
  std::string name;
  std::shared_ptr<const TranslationVocabulary> vocabulary;  // of the training part
  std::shared_ptr<const TranslationCorpus> train, held_out;
  int64_t too_long = 0;  // left out of either part
};

// Splits and leaves out what is longer than the options' lengths.
TranslationData MakeTranslationData(const TranslationCorpus& corpus,
                                    const TranslationOptions& options);
TranslationData MakeTranslationData(TranslationSplit split, const TranslationOptions& options);

// The fields above.
std::vector<DataField> TranslationFields(const TranslationVocabulary& vocabulary,
                                         const TranslationOptions& options);
// What "source" says of a translation, without padding.
std::vector<int32_t> SourceOf(const TranslationVocabulary& vocabulary, const Translation& t);

class TranslationBatchSource final : public ExampleSource {
 public:
  // The order's examples are the translations, which fit the lengths (CHECKed).
  TranslationBatchSource(std::shared_ptr<const TranslationCorpus> corpus,
                         std::shared_ptr<const TranslationVocabulary> vocabulary,
                         const TranslationOptions& options, ExampleOrder order);

 private:
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const std::shared_ptr<const TranslationCorpus> corpus_;
  const std::shared_ptr<const TranslationVocabulary> vocabulary_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TRANSLATION_BATCHES_H_
