#include "models/graph/model_slices.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::vector<TokenSlice>> SlicesOfModel(const ModelGraph& graph,
                                                      absl::Span<const int64_t> lengths,
                                                      int64_t row_parts) {
  PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
  for (const int64_t length : lengths) {
    if (length % row_parts == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token slices of ", absl::StrJoin(lengths, ","), " tokens: with sequence parallelism ",
        row_parts, " devices divide each, so they must be multiples of ", row_parts));
  }
  return MakeTokenSlices(lengths, TokensOf(graph.layers[0]));
}

absl::StatusOr<std::vector<int64_t>> EqualSlicesOfModel(const ModelGraph& graph, int64_t slices,
                                                        int64_t row_parts) {
  PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
  const int64_t tokens = TokensOf(graph.layers[0]), units = tokens / row_parts;
  if (slices > units) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--slices=", slices, ": more token slices than a sample's ", tokens, " tokens",
        row_parts > 1 ? absl::StrCat(" give, of which sequence parallelism divides each among ",
                                     row_parts, " devices; use at most ", units)
                      : ""));
  }
  std::vector<int64_t> lengths = EqualTokenSlices(units, slices);
  for (int64_t& length : lengths) length *= row_parts;
  return lengths;
}

}  // namespace pipelab
