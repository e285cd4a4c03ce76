// A result table: every column has a title, a unit and an origin, and origins never mix in one.
//
//   Table t("schemes", "Five schemes, one model");
//   t.AddKey("scheme");
//   t.AddColumn({.metric = "step_time", .title = "step time", .unit = "ms",
//                .origin = Origin::kMeasured, .decimals = 1});
//   t.AddColumn({.metric = "bubble", .title = "bubble", .unit = "%",
//                .origin = Origin::kSimulated, .decimals = 1});
//   t.AddRow({Label("gpipe"), Measured(41.2), Simulated(27.3)});
//   t.AddRow({Label("x"), Missing("out of memory"), Simulated(12.5).WithNote("M = 8")});
//   std::cout << t.ToTerminal();     // also ToMarkdown(), ToHtml(), ToCsv()
//
// A cell says where its value comes from, and a column takes only its own origin. Key columns name
// the configuration of a row; together they tell the rows of a table apart. A missing value has a
// reason. Values are in the column's unit; ToMs, ToMiB, ToGiB and ToPercent convert.
//
// Errors are kept: the first one is in status(), and Report::WriteTo returns it. A row with a
// mistake is left out.
#ifndef PIPELAB_EXPERIMENTS_REPORT_TABLE_H_
#define PIPELAB_EXPERIMENTS_REPORT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/ir/trace.h"
#include "tools/base/units.h"

namespace pipelab {

enum class Origin {
  kKey,        // no result: part of the row's name
  kMeasured,   // taken from a run here
  kReplayed,   // simulated from measured action times
  kSimulated,  // simulated from a cost model
  kPublished,  // printed in a paper; each value has a tag ("read", "derived", ...)
  kComputed,   // worked out from the configuration or from other values
};

absl::string_view OriginName(Origin origin);  // "measured"; "key"
absl::optional<Origin> FindOrigin(absl::string_view name);
Origin OriginOf(const Trace& trace);

// Conversions to the units that tables use.
// Division rounds once: 400000 ns are 0.4 ms, not 0.39999999999999997.
inline double ToMs(Nanoseconds t) { return static_cast<double>(t.value()) / 1e6; }
inline double ToMiB(Bytes b) { return static_cast<double>(b.value()) / (1024.0 * 1024.0); }
inline double ToGiB(Bytes b) { return ToMiB(b) / 1024.0; }
inline double ToPercent(double fraction) { return 100 * fraction; }

struct Cell {
  Origin origin = Origin::kKey;
  absl::optional<double> number = {};  // neither number nor text: a missing value
  std::string text = {};
  std::string tag = {};   // of a published value
  std::string note = {};  // printed as a footnote; the reason of a missing value
  bool missing = false;   // fits every column
  // What a measured number is the median or mean of, in the column's unit and the order in which
  // they were taken: //experiments:compare tells noise by them.
  std::vector<double> samples = {};

  Cell WithNote(std::string n) && {
    note = std::move(n);
    return std::move(*this);
  }
  Cell WithSamples(std::vector<double> s) && {
    samples = std::move(s);
    return std::move(*this);
  }
};

Cell Label(std::string text);  // for key columns
Cell Label(double number);
Cell Value(Origin origin, double number);
Cell Value(Origin origin, std::string text);
Cell Measured(double number);
Cell Replayed(double number);
Cell Simulated(double number);
Cell Computed(double number);
Cell Computed(std::string text);
Cell Published(double number, std::string tag);
Cell Missing(std::string reason);

struct Column {
  std::string metric = {};  // name in records.csv: lower case, digits and underscores
  std::string title = {};
  std::string brief = {};  // a shorter title for terminals; the title unless given
  std::string unit = {};   // "ms", "MiB", "%"; empty for pure numbers and text
  Origin origin = Origin::kKey;
  int decimals = 0;  // digits after the point in tables; files for machines carry the full value
  // Computed from measured values, or found within a limit of time: another run may have another.
  bool varies = false;

  // Whether every run on every machine must have the same values.
  bool deterministic() const {
    return !varies && origin != Origin::kMeasured && origin != Origin::kReplayed;
  }
};

class Table {
 public:
  // `id` names the table in files: lower case, digits and underscores.
  Table(std::string id, std::string caption);

  // Columns come before rows.
  void AddKey(std::string metric, std::string title = "");  // title: the metric unless given
  void AddColumn(Column column);
  void AddRow(std::vector<Cell> cells);
  void AddNote(std::string note);  // a sentence printed under the table
  // Every column that is no key varies (Column::varies): what a limit of time cut short, say.
  void SetVaries();

  const std::string& id() const { return id_; }
  const std::string& caption() const { return caption_; }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  // Notes as printed: first those of cells, numbered from 1 in reading order, equal ones once; then
  // the others.
  const std::vector<std::string>& cell_notes() const { return cell_notes_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // The first mistake: a cell of the wrong origin, a wrong number of cells, two rows with the same
  // keys, ...
  const absl::Status& status() const { return status_; }

  // The cell as a reader sees it, without footnote mark: "41.2", "bit-equal", "1.07 (read)", "-".
  std::string CellText(int row, int column) const;
  // "scheme=gpipe;devices=4": the key columns of a row.
  std::string RowKey(int row) const;
  // 1-based footnote of a cell, 0 for none.
  int NoteNumber(const Cell& cell) const;

  std::string ToTerminal() const;
  std::string ToMarkdown() const;
  std::string ToHtml() const;  // <table> with caption; not a page
  std::string ToCsv() const;   // header "step time [ms, measured]"; full precision

 private:
  absl::Status CheckColumn(const Column& column) const;
  absl::Status CheckRow(const std::vector<Cell>& cells) const;
  void Fail(absl::Status status);

  std::string id_, caption_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::string> cell_notes_, notes_;
  absl::Status status_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_TABLE_H_
