// The forms of a table: terminal, Markdown, HTML, CSV.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "experiments/report/markup.h"
#include "experiments/report/table.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

std::string OriginOrNothing(Origin origin) {
  return origin == Origin::kKey ? "" : std::string(OriginName(origin));
}

// Keys alone are not numbers to compare with: they stay on the left.
bool IsNumeric(const Table& table, int column) {
  bool any = false;
  for (const std::vector<Cell>& row : table.rows()) {
    if (row[column].missing) continue;
    if (!row[column].number) return false;
    any = true;
  }
  return any;
}

std::string CellWithMark(const Table& table, int row, int column) {
  std::string text = table.CellText(row, column);
  const int note = table.NoteNumber(table.rows()[row][column]);
  return note > 0 ? absl::StrCat(text, " [", note, "]") : text;
}

// Breaks at spaces into lines of at most `width` characters, single longer words apart.
std::vector<std::string> Wrap(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!lines.empty() && TextWidth(lines.back()) + 1 + TextWidth(word) <= width) {
      absl::StrAppend(&lines.back(), " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

// Titles wrap to about the width of what stands below them, so that many columns fit a terminal.
std::vector<std::vector<std::string>> TerminalHeader(const Table& table) {
  constexpr size_t kNarrowest = 11;
  const size_t n = table.columns().size();
  std::vector<std::vector<std::string>> titles(n);
  size_t lines = 0;
  bool any_unit = false, any_origin = false;
  for (size_t c = 0; c < n; ++c) {
    const Column& column = table.columns()[c];
    size_t width = std::max({kNarrowest, TextWidth(column.unit)});
    for (size_t r = 0; r < table.rows().size(); ++r) {
      width =
          std::max(width, TextWidth(CellWithMark(table, static_cast<int>(r), static_cast<int>(c))));
    }
    titles[c] = Wrap(column.brief, width);
    lines = std::max(lines, titles[c].size());
    any_unit |= !column.unit.empty();
    any_origin |= column.origin != Origin::kKey;
  }
  std::vector<std::vector<std::string>> header(lines, std::vector<std::string>(n));
  for (size_t c = 0; c < n; ++c) {
    const size_t above = lines - titles[c].size();
    for (size_t i = 0; i < titles[c].size(); ++i) header[above + i][c] = titles[c][i];
  }
  if (any_unit) header.emplace_back();
  for (size_t c = 0; any_unit && c < n; ++c) header.back().push_back(table.columns()[c].unit);
  if (any_origin) header.emplace_back();
  for (size_t c = 0; any_origin && c < n; ++c)
    header.back().push_back(OriginOrNothing(table.columns()[c].origin));
  return header;
}

std::string TerminalLines(const Table& table) {
  std::vector<std::vector<std::string>> lines = TerminalHeader(table);
  const size_t header = lines.size();
  for (int r = 0; r < static_cast<int>(table.rows().size()); ++r) {
    lines.emplace_back();
    for (int c = 0; c < static_cast<int>(table.columns().size()); ++c)
      lines.back().push_back(CellWithMark(table, r, c));
  }
  std::vector<bool> right;
  for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
    right.push_back(IsNumeric(table, c));
  }
  return AlignColumns(lines, header, right);
}

std::string MarkdownLines(const Table& table) {
  const auto escape = [](absl::string_view text) {
    return absl::StrReplaceAll(MarkdownEscape(text), {{"|", "\\|"}, {"\n", " "}});
  };
  std::string titles = "|", rule = "|", origins = "|", rows;
  for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
    const Column& column = table.columns()[c];
    const std::string origin = OriginOrNothing(column.origin);
    absl::StrAppend(&titles, " ", escape(column.title),
                    column.unit.empty() ? "" : absl::StrCat(" [", escape(column.unit), "]"), " |");
    absl::StrAppend(&rule, IsNumeric(table, c) ? " ---: |" : " --- |");
    absl::StrAppend(&origins, " ", origin.empty() ? "" : absl::StrCat("*", origin, "*"), " |");
  }
  for (int r = 0; r < static_cast<int>(table.rows().size()); ++r) {
    absl::StrAppend(&rows, "|");
    for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
      absl::StrAppend(&rows, " ", escape(CellWithMark(table, r, c)), " |");
    }
    absl::StrAppend(&rows, "\n");
  }
  return absl::StrCat(titles, "\n", rule, "\n", origins, "\n", rows);
}

std::string HtmlHeader(const Table& table) {
  std::string html = "<thead><tr>";
  for (int i = 0; i < static_cast<int>(table.columns().size()); ++i) {
    const Column& c = table.columns()[i];
    absl::StrAppend(&html, "<th scope=\"col\"", IsNumeric(table, i) ? " class=\"num\"" : "",
                    c.brief == c.title ? "" : absl::StrCat(" title=\"", HtmlEscape(c.title), "\""),
                    "><span>", HtmlEscape(c.brief), "</span>");
    if (!c.unit.empty())
      absl::StrAppend(&html, "<span class=\"unit\">", HtmlEscape(c.unit), "</span>");
    if (c.origin != Origin::kKey) {
      absl::StrAppend(&html, "<span class=\"origin ", OriginName(c.origin), "\">",
                      OriginName(c.origin), "</span>");
    }
    absl::StrAppend(&html, "</th>");
  }
  return html + "</tr></thead>\n";
}

std::string HtmlCell(const Table& table, int row, int column) {
  const Cell& cell = table.rows()[row][column];
  const bool key = table.columns()[column].origin == Origin::kKey;
  const char* tag = key ? "th" : "td";
  std::string html = absl::StrCat("<", tag, key ? " scope=\"row\"" : "");
  if (IsNumeric(table, column)) absl::StrAppend(&html, " class=\"num\"");
  // What a reader sorts by and can copy.
  if (cell.number) absl::StrAppend(&html, " data-v=\"", FullNumber(*cell.number), "\"");
  if (cell.missing) absl::StrAppend(&html, " data-missing");
  absl::StrAppend(&html, ">", HtmlEscape(table.CellText(row, column)));
  const int note = table.NoteNumber(cell);
  if (note > 0) {
    absl::StrAppend(&html, "<sup><a href=\"#", table.id(), "-note-", note, "\" aria-label=\"note ",
                    note, "\">", note, "</a></sup>");
  }
  return absl::StrCat(html, "</", tag, ">");
}

std::string HtmlNotes(const Table& table) {
  std::string html;
  if (!table.cell_notes().empty()) {
    absl::StrAppend(&html, "<ol class=\"notes\">\n");
    for (size_t i = 0; i < table.cell_notes().size(); ++i) {
      absl::StrAppend(&html, "<li id=\"", table.id(), "-note-", i + 1, "\">",
                      HtmlEscape(table.cell_notes()[i]), "</li>\n");
    }
    absl::StrAppend(&html, "</ol>\n");
  }
  for (const std::string& note : table.notes()) {
    absl::StrAppend(&html, "<p class=\"note\">", HtmlEscape(note), "</p>\n");
  }
  return html;
}

}  // namespace

std::string Table::ToTerminal() const {
  std::string text = absl::StrCat(caption_, "\n\n", TerminalLines(*this));
  if (!cell_notes_.empty() || !notes_.empty()) absl::StrAppend(&text, "\n");
  for (size_t i = 0; i < cell_notes_.size(); ++i) {
    absl::StrAppend(&text, "[", i + 1, "] ", cell_notes_[i], "\n");
  }
  for (const std::string& note : notes_) absl::StrAppend(&text, note, "\n");
  return text;
}

std::string Table::ToMarkdown() const {
  std::string text = absl::StrCat("**", MarkdownEscape(caption_), "**\n\n", MarkdownLines(*this));
  for (size_t i = 0; i < cell_notes_.size(); ++i) {
    absl::StrAppend(&text, "\n\\[", i + 1, "\\] ", MarkdownEscape(cell_notes_[i]), "\n");
  }
  for (const std::string& note : notes_) absl::StrAppend(&text, "\n", MarkdownEscape(note), "\n");
  return text;
}

std::string Table::ToHtml() const {
  // Many columns: cards on a narrow screen; in print a smaller font, or landscape.
  const char* width = columns_.size() > 14 ? " wide" : columns_.size() > 8 ? " many" : "";
  std::string html =
      absl::StrCat("<div class=\"scroll", width, "\" role=\"region\" tabindex=\"0\" aria-label=\"",
                   HtmlEscape(caption_), "\">\n<table id=\"", id_, "\">\n<caption>",
                   HtmlEscape(caption_), "</caption>\n", HtmlHeader(*this), "<tbody>\n");
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    absl::StrAppend(&html, "<tr>");
    for (int c = 0; c < static_cast<int>(columns_.size()); ++c)
      absl::StrAppend(&html, HtmlCell(*this, r, c));
    absl::StrAppend(&html, "</tr>\n");
  }
  return absl::StrCat(html, "</tbody>\n</table>\n</div>\n", HtmlNotes(*this));
}

std::string Table::ToCsv() const {
  std::vector<std::string> fields;
  for (const Column& c : columns_) {
    const std::string origin = OriginOrNothing(c.origin);
    std::string title = c.title;
    if (!c.unit.empty() || !origin.empty()) {
      absl::StrAppend(&title, " [", c.unit, c.unit.empty() || origin.empty() ? "" : ", ", origin,
                      "]");
    }
    fields.push_back(CsvField(title));
  }
  std::string csv = absl::StrCat(absl::StrJoin(fields, ","), "\n");
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    fields.clear();
    for (int c = 0; c < static_cast<int>(columns_.size()); ++c) {
      const Cell& cell = rows_[r][c];
      fields.push_back(CsvField(cell.missing  ? ""
                                : cell.number ? FullNumber(*cell.number)
                                              : cell.text));
    }
    absl::StrAppend(&csv, absl::StrJoin(fields, ","), "\n");
  }
  return csv;
}

}  // namespace pipelab
