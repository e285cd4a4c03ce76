#include "experiments/report/overview_html.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"

namespace pipelab {
namespace {

// The first key alone: a bar has room for one name.
std::string RowName(const Table& table, int row) { return HtmlEscape(table.CellText(row, 0)); }

std::string Panel(const Table& table, int column) {
  const Column& c = table.columns()[column];
  double largest = 0, least = 0;
  bool any = false;
  for (const std::vector<Cell>& row : table.rows()) {
    if (!row[column].number) continue;
    largest = std::max(largest, *row[column].number);
    least = any ? std::min(least, *row[column].number) : *row[column].number;
    any = true;
  }
  if (!any || least < 0) return "";  // a bar has no negative length
  std::string html = absl::StrCat(
      "<div class=\"panel\">\n<h3>", HtmlEscape(c.title), " <span class=\"unit\">",
      HtmlEscape(c.unit), c.unit.empty() ? "" : ", ", OriginName(c.origin), "</span></h3>\n<ul>\n");
  for (int r = 0; r < static_cast<int>(table.rows().size()); ++r) {
    const Cell& cell = table.rows()[r][column];
    if (!cell.number) continue;
    const double share = largest > 0 ? 100 * *cell.number / largest : 0;
    absl::StrAppend(&html, "<li", *cell.number == least ? " class=\"least\"" : "",
                    "><span class=\"name\">", RowName(table, r),
                    "</span> <span class=\"track\"><span class=\"fill\" style=\"width:",
                    FixedNumber(share, 1), "%\"></span></span> <span class=\"value\">",
                    HtmlEscape(table.CellText(r, column)), "</span></li>\n");
  }
  return html + "</ul>\n</div>\n";
}

}  // namespace

int FindColumn(const Table& table, absl::string_view metric) {
  for (size_t c = 0; c < table.columns().size(); ++c) {
    if (table.columns()[c].metric == metric) return static_cast<int>(c);
  }
  return -1;
}

std::string OverviewHtml(const Table& table, const std::vector<std::string>& metrics) {
  std::string panels;
  for (const std::string& metric : metrics) {
    const int column = FindColumn(table, metric);
    if (column >= 0) panels += Panel(table, column);
  }
  if (panels.empty()) return "";
  return absl::StrCat("<div class=\"overview\">\n", panels,
                      "</div>\n<p class=\"note\">Less is better; the least is marked.</p>\n");
}

}  // namespace pipelab
