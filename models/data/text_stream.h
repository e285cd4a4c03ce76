// A text in its order, one sample after another: a stream that changes fast (camera_frames.h has
// one that changes slowly).
//
//   const TextStream bytes(text.train->tokens(), text.vocabulary.size(), /*context=*/16,
//                          /*stride=*/1);
//   bytes.examples()      // samples of a pass over the text
//
// Sample t has `context` tokens from t * stride on. The last `stride` of them have the token one
// place on as their target, and those before have none (kNoData): earlier samples have learned
// these. So a stride of 1 is byte by byte, and one of `context` window by window. In turn, and from
// the first again behind the last.
#ifndef PIPELAB_MODELS_DATA_TEXT_STREAM_H_
#define PIPELAB_MODELS_DATA_TEXT_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "models/data/example_source.h"

namespace pipelab {

class TextStream final : public ExampleSource {
 public:
  // The fields of token_fields.h. The tokens must outlive the stream and be more than `context`;
  // the stride is 1 to `context` (checked).
  TextStream(absl::Span<const uint8_t> tokens, int64_t vocabulary, int64_t context, int64_t stride);

  int64_t context() const { return context_; }
  int64_t stride() const { return stride_; }
  int64_t vocabulary() const { return fields()[0].limit; }
  // One line where the text ends in mid-sample, and what it has of that sample; else empty. The
  // stream has the whole samples before it.
  std::string End() const;

 private:
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const absl::Span<const uint8_t> tokens_;
  const int64_t context_, stride_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TEXT_STREAM_H_
