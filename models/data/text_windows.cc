#include "models/data/text_windows.h"

#include <algorithm>

#include "glog/logging.h"
#include "models/data/token_fields.h"

namespace pipelab {

TextWindows::TextWindows(absl::Span<const uint8_t> tokens, int64_t vocabulary, int64_t context)
    : BatchSource(TokenFields(context, vocabulary)),
      tokens_(tokens),
      context_(context),
      stride_(context - context / 2),
      // The last target of the last window is a token.
      samples_((static_cast<int64_t>(tokens.size()) - context - 1) / stride_ + 1) {
  CHECK_GT(static_cast<int64_t>(tokens_.size()), context_);
}

void TextWindows::FillIds(int field, int64_t, int64_t first_sample,
                          absl::Span<int32_t> out_M) const {
  const int64_t samples = SamplesIn(field, out_M.size());
  CHECK_GE(first_sample, 0);
  CHECK_LE(first_sample + samples, samples_);
  for (int64_t i = 0; i < samples; ++i) {
    const auto from = tokens_.begin() + (first_sample + i) * stride_ + field;  // targets: one on
    std::copy(from, from + context_, out_M.begin() + i * context_);
  }
}

}  // namespace pipelab
