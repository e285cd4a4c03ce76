#include "tools/base/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

using Cells = std::vector<std::string>;

size_t Width(absl::string_view text) {  // bytes that do not continue a character
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

bool NoValue(absl::string_view cell) { return cell.empty() || cell == "-"; }

// "37.2", "-1", "1,024", "12.5%", "3.1x", "~0.4": starts like a number and holds few letters.
bool LooksLikeNumber(absl::string_view cell) {
  while (!cell.empty() && absl::string_view("+-~<>= ").find(cell[0]) != absl::string_view::npos) {
    cell.remove_prefix(1);
  }
  if (absl::StartsWith(cell, "nan") || absl::StartsWith(cell, "inf")) return true;
  if (cell.empty() || !(absl::ascii_isdigit(cell[0]) || cell[0] == '.')) return false;
  return std::count_if(cell.begin(), cell.end(), absl::ascii_isalpha) <= 3;
}

std::string Pad(const std::string& cell, size_t width, bool right) {
  const std::string blanks(width - std::min(width, Width(cell)), ' ');
  return right ? blanks + cell : cell + blanks;
}

std::string JoinLine(const Cells& cells, const std::vector<size_t>& widths,
                     const std::vector<bool>& right) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&line, i == 0 ? "" : "  ", Pad(cells[i], widths[i], right[i]));
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
}

std::string MarkdownLine(const Cells& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    absl::StrAppend(&line, " ", absl::StrReplaceAll(cell, {{"|", "\\|"}, {"\n", " "}}), " |");
  }
  return line + "\n";
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  CHECK_EQ(cells.size(), columns_.size()) << "cells in a row of a table";
  rows_.push_back(std::move(cells));
}

bool TextTable::RightAligned(size_t column) const {
  bool any = false;
  for (const Cells& row : rows_) {
    if (NoValue(row[column])) continue;
    if (!LooksLikeNumber(row[column])) return false;
    any = true;
  }
  return any;
}

std::vector<Cells> TextTable::HeaderRows() const {
  Cells titles, units, origins;
  bool any_unit = false, any_origin = false;
  for (const TextColumn& c : columns_) {
    titles.push_back(c.title);
    units.push_back(c.unit);
    origins.push_back(c.origin);
    any_unit |= !c.unit.empty();
    any_origin |= !c.origin.empty();
  }
  std::vector<Cells> rows = {titles};
  if (any_unit) rows.push_back(units);
  if (any_origin) rows.push_back(origins);
  return rows;
}

std::string TextTable::ToText() const {
  const std::vector<Cells> header = HeaderRows();
  std::vector<size_t> widths(columns_.size(), 0);
  std::vector<bool> right;
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (const Cells& row : header) widths[i] = std::max(widths[i], Width(row[i]));
    for (const Cells& row : rows_) widths[i] = std::max(widths[i], Width(row[i]));
    right.push_back(RightAligned(i));
  }
  std::string text;
  for (const Cells& row : header) text += JoinLine(row, widths, right);
  Cells rule;
  for (size_t width : widths) rule.push_back(std::string(width, '-'));
  text += JoinLine(rule, widths, right);
  for (const Cells& row : rows_) text += JoinLine(row, widths, right);
  return text;
}

// Markdown has one header row: units join their titles, origins are the first row, in italics.
std::string TextTable::ToMarkdown() const {
  Cells titles, rule, origins;
  bool any_origin = false;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const TextColumn& c = columns_[i];
    titles.push_back(c.unit.empty() ? c.title : absl::StrCat(c.title, " (", c.unit, ")"));
    rule.push_back(RightAligned(i) ? "---:" : "---");
    origins.push_back(c.origin.empty() ? "" : absl::StrCat("*", c.origin, "*"));
    any_origin |= !c.origin.empty();
  }
  std::string text = MarkdownLine(titles) + MarkdownLine(rule);
  if (any_origin) text += MarkdownLine(origins);
  for (const Cells& row : rows_) text += MarkdownLine(row);
  return text;
}

}  // namespace pipelab
