// Batches of text for language models: a token is a byte.
//
//   PIPELAB_ASSIGN_OR_RETURN(TextData data, MakeTextData(corpus, /*context=*/128, /*seed=*/1));
//   std::vector<int32_t> tokens(4 * 128);
//   data.train->FillIds(/*field=*/0, step, /*first_sample=*/0, absl::MakeSpan(tokens));
//
// Vocabulary: the distinct bytes of the whole text, sorted (the novels have 82). Held-out split:
// the last tenth of each document, rounded down to bytes; the rest of each, joined, is for
// training. The split depends on nothing else. A sample is `context` successive tokens from a place
// drawn by (seed, part, step, sample) alone, so any partition of a batch sees the same samples; its
// targets are the tokens one place on. A sample may run from one document into the next.
#ifndef PIPELAB_MODELS_DATA_TEXT_BATCHES_H_
#define PIPELAB_MODELS_DATA_TEXT_BATCHES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/data/batch_source.h"
#include "models/data/text_corpus.h"

namespace pipelab {

class ByteVocabulary {
 public:
  explicit ByteVocabulary(const TextCorpus& corpus);
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  // InvalidArgument names a byte that the vocabulary lacks.
  absl::StatusOr<std::vector<uint8_t>> Encode(absl::string_view text) const;
  std::string Decode(absl::Span<const int32_t> tokens) const;  // '?' for what is no token

 private:
  std::string bytes_;               // token -> byte, ascending
  std::array<int16_t, 256> token_;  // byte -> token, or -1
};

// Samples of one part of a text: the fields of token_fields.h. Immutable: any thread may call it.
class TextBatchSource final : public BatchSource {
 public:
  // `tokens` holds more than `context` of them (checked). `part` names the random stream.
  TextBatchSource(std::shared_ptr<const std::vector<uint8_t>> tokens, int64_t vocabulary,
                  int64_t context, uint64_t seed, absl::string_view part);

  int64_t vocabulary() const { return fields()[0].limit; }
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out_M) const override;

  const std::vector<uint8_t>& tokens() const { return *tokens_; }

 private:
  std::shared_ptr<const std::vector<uint8_t>> tokens_;
  const int64_t context_;
  const uint64_t seed_;
  const std::string part_;
};

struct TextData {
  std::string name;  // the corpus's
  ByteVocabulary vocabulary;
  std::unique_ptr<TextBatchSource> train;     // stream "data/stepN"
  std::unique_ptr<TextBatchSource> held_out;  // stream "data/held_out/stepN"
};

// The part of each document that is for training, as a text of its own: for choosing settings,
// where its last tenths are held out in the place of the real ones.
TextCorpus WithoutHeldOut(const TextCorpus& corpus);

// InvalidArgument when a part of the text is not longer than the context.
absl::StatusOr<TextData> MakeTextData(const TextCorpus& corpus, int64_t context, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TEXT_BATCHES_H_
