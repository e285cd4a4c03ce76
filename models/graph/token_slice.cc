#include "models/graph/token_slice.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"

namespace pipelab {

std::vector<int64_t> EqualTokenSlices(int64_t tokens, int64_t slices) {
  CHECK(slices >= 1 && slices <= tokens) << slices << " slices of " << tokens << " tokens";
  std::vector<int64_t> lengths(slices, tokens / slices);
  for (int64_t i = 0; i < tokens % slices; ++i) ++lengths[i];
  return lengths;
}

absl::StatusOr<std::vector<TokenSlice>> MakeTokenSlices(absl::Span<const int64_t> lengths,
                                                        int64_t tokens) {
  std::vector<TokenSlice> slices;
  int64_t first = 0;
  bool positive = true;
  for (int64_t length : lengths) {
    slices.push_back({first, length});
    first += length;
    positive = positive && length >= 1 && length <= tokens;
  }
  if (!lengths.empty() && (!positive || first != tokens)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token slices of ", absl::StrJoin(lengths, ","), " tokens: each needs at ",
                     "least 1, and together they must be a sample's ", tokens));
  }
  if (slices.size() < 2) slices = {TokenSlice()};
  return slices;
}

}  // namespace pipelab
