#include "models/data/edge_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

constexpr absl::string_view kBetween = " \t,\r";

// The next word of the line, empty at its end.
absl::string_view NextWord(absl::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBetween), line->size()));
  const absl::string_view word = line->substr(0, line->find_first_of(kBetween));
  line->remove_prefix(word.size());
  return word;
}

absl::Status LineError(absl::string_view what, int64_t line, absl::string_view word) {
  if (word.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": line ", line, ": must have two vertices"));
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": line ", line, ": \"", word.substr(0, 40),
                                                 "\": must be a vertex's number, 0 to ",
                                                 kMostListedVertices - 1));
}

}  // namespace

absl::StatusOr<CsrGraph> ParseEdgeList(absl::string_view text, absl::string_view what) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  int32_t largest = -1;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    ++number;
    const absl::string_view begun = absl::StripLeadingAsciiWhitespace(line);
    if (begun.empty() || begun.front() == '#' || begun.front() == '%') continue;
    int32_t ends[2];
    for (int32_t& v : ends) {
      const absl::string_view word = NextWord(&line);
      if (!absl::SimpleAtoi(word, &v) || v < 0 || v >= kMostListedVertices) {
        return LineError(what, number, word);
      }
      largest = std::max(largest, v);
    }
    edges.emplace_back(ends[0], ends[1]);
  }
  if (edges.empty()) return absl::InvalidArgumentError(absl::StrCat(what, ": has no edge"));
  const int64_t most = 64 * static_cast<int64_t>(edges.size()) + 1024;
  if (largest >= most) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": vertex ", largest, ": must be below ",
                                                   most, ", 64 for each of the ", edges.size(),
                                                   " edges and 1024; number vertices from 0"));
  }
  return CsrGraph::FromEdges(largest + 1, edges);
}

}  // namespace pipelab
