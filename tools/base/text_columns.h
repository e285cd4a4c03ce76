// Cells in aligned columns for a terminal.
//
//   AlignColumns({{"scheme", "step time"}, {"", "ms"}, {"1f1b", "37.2"}}, /*header_lines=*/2,
//                {false, true});
//
//   scheme  step time
//                  ms
//   ------  ---------
//   1f1b         37.2
#ifndef PIPELAB_TOOLS_BASE_TEXT_COLUMNS_H_
#define PIPELAB_TOOLS_BASE_TEXT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

size_t TextWidth(absl::string_view text);  // characters of UTF-8, not bytes

// Each line has a cell for each entry of `right`, which says whether the column stands on the
// right. A rule follows the header lines; no line ends in blanks.
std::string AlignColumns(const std::vector<std::vector<std::string>>& lines, size_t header_lines,
                         const std::vector<bool>& right);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_TEXT_COLUMNS_H_
