// A whole text in windows of a language model's length, for evaluation: each target that counts has
// at least half a window before it, and counts once.
//
//   const TextWindows windows(held_out.tokens(), vocabulary, /*context=*/128);
//   for (int64_t i = 0; i < windows.samples(); ++i) ...     // sample i, whatever the step
//   // Row r of sample i, r >= windows.first_row(), is about the token windows.Place(i, r).
//   double same = ngram.Loss(windows.tokens(), windows.first_place(), windows.end_place());
//
// Windows begin half a context after one another, and the second half of each counts: the tokens
// from first_place() to end_place(), each once and in order. What is left of a window at the end of
// the text is left out.
#ifndef PIPELAB_MODELS_DATA_TEXT_WINDOWS_H_
#define PIPELAB_MODELS_DATA_TEXT_WINDOWS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "models/data/batch_source.h"

namespace pipelab {

class TextWindows final : public BatchSource {
 public:
  // Fields of token_fields.h. The tokens must outlive the windows, and be more than `context`
  // (checked).
  TextWindows(absl::Span<const uint8_t> tokens, int64_t vocabulary, int64_t context);

  int64_t samples() const { return samples_; }
  absl::Span<const uint8_t> tokens() const { return tokens_; }

  // Rows of a sample that count: from this one on.
  int64_t first_row() const { return context_ / 2; }
  // Where in tokens() the target of a sample's row is.
  int64_t Place(int64_t sample, int64_t row) const { return sample * stride_ + row + 1; }
  // The targets that count, in tokens().
  int64_t first_place() const { return first_row() + 1; }
  int64_t end_place() const { return first_place() + samples_ * stride_; }

  // The samples are below samples() (checked).
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out_M) const override;

 private:
  const absl::Span<const uint8_t> tokens_;
  const int64_t context_, stride_, samples_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TEXT_WINDOWS_H_
