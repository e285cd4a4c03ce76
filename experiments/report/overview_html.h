// A table's columns as bars, one panel per column and one bar per row: the first thing that a
// reader of report.html sees.
//
//   std::string html = OverviewHtml(table, {"step_time", "bubble"});    // metrics of columns
//
// Less is better in each panel, and the least is marked. Rows without a number are left out. It is
// text and boxes, so it wraps on a phone, follows light and dark, and is read out row by row.
#ifndef PIPELAB_EXPERIMENTS_REPORT_OVERVIEW_HTML_H_
#define PIPELAB_EXPERIMENTS_REPORT_OVERVIEW_HTML_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "experiments/report/table.h"

namespace pipelab {

// The column of that metric; -1: there is none.
int FindColumn(const Table& table, absl::string_view metric);

// Each metric is a column's. Empty where no row has a number.
std::string OverviewHtml(const Table& table, const std::vector<std::string>& metrics);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_OVERVIEW_HTML_H_
