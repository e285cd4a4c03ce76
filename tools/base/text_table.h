// Tables for people: aligned plain text and Markdown.
//
//   TextTable t({{"scheme"}, {"step time", "ms", "measured"}, {"bubble", "%", "simulated"}});
//   t.AddRow({"1f1b", "37.2", "27.3"});
//   std::cout << t.ToText();
//
//   scheme  step time     bubble
//                  ms          %
//            measured  simulated
//   ------  ---------  ---------
//   1f1b         37.2       27.3
//
// Columns of numbers are right-aligned, others left. Rows of units and origins show when any column
// has one. Widths count characters (UTF-8), not bytes.
#ifndef PIPELAB_TOOLS_BASE_TEXT_TABLE_H_
#define PIPELAB_TOOLS_BASE_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace pipelab {

struct TextColumn {
  std::string title;
  std::string unit;    // "ms", "MiB"; empty where there is none
  std::string origin;  // measured, replayed, simulated, published, computed; empty for labels
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  // One cell a column (checked). An empty cell or "-" stands for no value.
  void AddRow(std::vector<std::string> cells);

  std::string ToText() const;
  std::string ToMarkdown() const;

  const std::vector<TextColumn>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  bool RightAligned(size_t column) const;
  std::vector<std::vector<std::string>> HeaderRows() const;

  std::vector<TextColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_TEXT_TABLE_H_
