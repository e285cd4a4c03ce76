// A range of the tokens of each sample: what a token pipeline (TeraPipe, Li et al., ICML 2021)
// passes from stage to stage in the place of whole samples.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<TokenSlice> slices, MakeTokenSlices({3, 3, 2}, 8));
//   EqualTokenSlices(8, 3)      // {3, 3, 2}: the first ones take the remainder
#ifndef PIPELAB_MODELS_GRAPH_TOKEN_SLICE_H_
#define PIPELAB_MODELS_GRAPH_TOKEN_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pipelab {

// Tokens [first, first + count) of each sample. The default: whole samples, without slices.
struct TokenSlice {
  int64_t first = 0, count = 0;
  // What costs of a pass depend on that takes part in SlimPipe's context exchange, of slices of
  // equal lengths (pipelines/ir/slice_exchange.h): of the earlier chunks of `count` tokens, how
  // many it gives to each of some devices, or receives of each. Both are views, and one is empty.
  absl::Span<const int64_t> given = {}, received = {};

  bool whole() const { return count == 0; }
  // How many of a sample's `tokens` it has. Of one of `parts` devices that divide each slice:
  // `tokens` are those that the device has of a whole sample.
  int64_t CountOf(int64_t tokens, int64_t parts = 1) const {
    return whole() ? tokens : count / parts;
  }
  int64_t end() const { return first + count; }
  bool exchanges() const { return !given.empty() || !received.empty(); }

  friend bool operator==(const TokenSlice& a, const TokenSlice& b) {
    return a.first == b.first && a.count == b.count;
  }
};

// The lengths of `slices` slices as equal as can be, the longer ones first: a slice's attention
// costs more the later it comes. 1 <= slices <= tokens.
std::vector<int64_t> EqualTokenSlices(int64_t tokens, int64_t slices);

// The slices of these lengths, in token order. No lengths, or one: a single slice, which is whole.
// InvalidArgument unless the lengths are at least 1 and add up to the sample's tokens.
absl::StatusOr<std::vector<TokenSlice>> MakeTokenSlices(absl::Span<const int64_t> lengths,
                                                        int64_t tokens);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_TOKEN_SLICE_H_
