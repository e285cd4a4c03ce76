#include "models/data/text_batches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "models/data/token_fields.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kHeldOutPart = 10;  // one part in ten of each document

size_t TrainingBytes(size_t bytes) { return bytes - bytes / kHeldOutPart; }

}  // namespace

ByteVocabulary::ByteVocabulary(const TextCorpus& corpus) {
  std::array<bool, 256> seen = {};
  for (const std::string& text : corpus.documents) {
    for (const char c : text) seen[static_cast<uint8_t>(c)] = true;
  }
  for (int byte = 0; byte < 256; ++byte) {
    token_[byte] = seen[byte] ? static_cast<int16_t>(bytes_.size()) : int16_t{-1};
    if (seen[byte]) bytes_.push_back(static_cast<char>(byte));
  }
}

absl::StatusOr<std::vector<uint8_t>> ByteVocabulary::Encode(absl::string_view text) const {
  std::vector<uint8_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) {
    const int16_t token = token_[static_cast<uint8_t>(c)];
    if (token < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("text: byte 0x%02x at %d is not in the vocabulary of %d bytes",
                          static_cast<uint8_t>(c), tokens.size(), bytes_.size()));
    }
    tokens.push_back(static_cast<uint8_t>(token));
  }
  return tokens;
}

std::string ByteVocabulary::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t t : tokens) text.push_back(t >= 0 && t < size() ? bytes_[t] : '?');
  return text;
}

TextBatchSource::TextBatchSource(std::shared_ptr<const std::vector<uint8_t>> tokens,
                                 int64_t vocabulary, int64_t context, uint64_t seed,
                                 absl::string_view part)
    : BatchSource(TokenFields(context, vocabulary)),
      tokens_(std::move(tokens)),
      context_(context),
      seed_(seed),
      part_(part) {
  CHECK_GT(static_cast<int64_t>(tokens_->size()), context_);
}

void TextBatchSource::FillIds(int field, int64_t step, int64_t first_sample,
                              absl::Span<int32_t> out_M) const {
  const int64_t samples = SamplesIn(field, out_M.size());
  const CounterRng rng(seed_, absl::StrCat(part_, "/step", step));
  const uint64_t places = tokens_->size() - static_cast<size_t>(context_);  // a target behind each
  for (int64_t sample = 0; sample < samples; ++sample) {
    const uint64_t place = rng.Below(static_cast<uint64_t>(first_sample + sample), places);
    const uint8_t* from = tokens_->data() + place + field;  // targets are one place on
    for (int64_t i = 0; i < context_; ++i) out_M[sample * context_ + i] = from[i];
  }
}

TextCorpus WithoutHeldOut(const TextCorpus& corpus) {
  TextCorpus part = corpus;
  for (std::string& text : part.documents) text.resize(TrainingBytes(text.size()));
  return part;
}

absl::StatusOr<TextData> MakeTextData(const TextCorpus& corpus, int64_t context, uint64_t seed) {
  ByteVocabulary vocabulary(corpus);
  auto train = std::make_shared<std::vector<uint8_t>>();
  auto held_out = std::make_shared<std::vector<uint8_t>>();
  for (const std::string& text : corpus.documents) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<uint8_t> tokens, vocabulary.Encode(text));
    const auto split = tokens.begin() + static_cast<ptrdiff_t>(TrainingBytes(tokens.size()));
    train->insert(train->end(), tokens.begin(), split);
    held_out->insert(held_out->end(), split, tokens.end());
  }
  // The held-out part is the smaller one, save in tiny texts.
  const size_t shortest = std::min(train->size(), held_out->size());
  if (context < 1 || static_cast<size_t>(context) >= shortest) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "context of %d tokens: must be from 1 to %d for the text '%s' (%d bytes for training, %d "
        "held out)",
        context, static_cast<int64_t>(shortest) - 1, corpus.name, train->size(), held_out->size()));
  }
  TextData data = {corpus.name, vocabulary, nullptr, nullptr};
  data.train = std::make_unique<TextBatchSource>(train, vocabulary.size(), context, seed, "data");
  data.held_out = std::make_unique<TextBatchSource>(held_out, vocabulary.size(), context, seed,
                                                    "data/held_out");
  return data;
}

}  // namespace pipelab
