#include "models/graph/context_part.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {

std::vector<TokenSlice> ContextPart::Tokens(int64_t tokens, TokenSlice own) const {
  CHECK_EQ(tokens % divisor(), 0) << parts << " parts of " << tokens << " tokens";
  const int64_t size = tokens / divisor();
  const int64_t begin = own.first, end = own.whole() ? chunks() * size : own.end();
  std::vector<TokenSlice> slices;
  for (int64_t i = 0; i < chunks(); ++i) {
    const int64_t first = std::max(begin, i * size), last = std::min(end, (i + 1) * size);
    if (first >= last) continue;
    slices.push_back({ChunkNumber(i) * size + first - i * size, last - first});
  }
  return slices;
}

}  // namespace pipelab
