#include "models/data/text_stream.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/data/token_fields.h"

namespace pipelab {
namespace {

std::vector<DataField> StreamFields(int64_t vocabulary, int64_t context, int64_t stride) {
  std::vector<DataField> fields = TokenFields(context, vocabulary);
  fields[1].padded = stride < context;
  return fields;
}

int64_t SamplesOf(size_t tokens, int64_t context, int64_t stride) {
  CHECK_GE(stride, 1);
  CHECK_LE(stride, context);
  CHECK_GT(static_cast<int64_t>(tokens), context);
  return (static_cast<int64_t>(tokens) - context - 1) / stride + 1;  // the last target is a token
}

}  // namespace

TextStream::TextStream(absl::Span<const uint8_t> tokens, int64_t vocabulary, int64_t context,
                       int64_t stride)
    : ExampleSource(StreamFields(vocabulary, context, stride),
                    ExampleOrder(SamplesOf(tokens.size(), context, stride))),
      tokens_(tokens),
      context_(context),
      stride_(stride) {}

std::string TextStream::End() const {
  const int64_t taken = (examples() - 1) * stride_ + context_ + 1;
  const int64_t left = static_cast<int64_t>(tokens_.size()) - taken;
  if (left == 0) return "";
  return absl::StrCat("the text ends in mid-sample: sample ", examples(), " has ", left, " of its ",
                      stride_, " new bytes; the ", examples(), " before it are whole");
}

void TextStream::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  const auto from = tokens_.begin() + draw.example * stride_ + field;  // targets are one place on
  std::copy(from, from + context_, out.begin());
  if (field == 1) std::fill_n(out.begin(), context_ - stride_, kNoData);
}

}  // namespace pipelab
