#include "tools/base/text_columns.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                 const std::vector<bool>& right) {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::string blanks(widths[c] - TextWidth(cells[c]), ' ');
    absl::StrAppend(&line, c == 0 ? "" : "  ", right[c] ? blanks : "", cells[c],
                    right[c] ? "" : blanks);
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
}

}  // namespace

size_t TextWidth(absl::string_view text) {  // bytes that do not continue a character
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string AlignColumns(const std::vector<std::vector<std::string>>& lines, size_t header_lines,
                         const std::vector<bool>& right) {
  std::vector<size_t> widths(right.size(), 1);
  for (const std::vector<std::string>& line : lines) {
    CHECK_EQ(line.size(), right.size()) << "cells in a line of a table";
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], TextWidth(line[c]));
  }
  std::vector<std::string> rule;
  for (size_t width : widths) rule.emplace_back(width, '-');
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == header_lines) text += Line(rule, widths, right);
    text += Line(lines[i], widths, right);
  }
  if (header_lines == lines.size()) text += Line(rule, widths, right);
  return text;
}

}  // namespace pipelab
