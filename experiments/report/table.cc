#include "experiments/report/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/report/markup.h"

namespace pipelab {
namespace {

Cell WithText(Origin origin, std::string text) {
  Cell c;
  c.origin = origin;
  c.text = std::move(text);
  return c;
}

std::string KeyOf(const std::vector<Column>& columns, const std::vector<Cell>& cells) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].origin != Origin::kKey) continue;
    parts.push_back(absl::StrCat(columns[i].metric, "=",
                                 cells[i].number ? FullNumber(*cells[i].number) : cells[i].text));
  }
  return absl::StrJoin(parts, ";");
}

}  // namespace

absl::string_view OriginName(Origin origin) {
  switch (origin) {
    case Origin::kKey:
      return "key";
    case Origin::kMeasured:
      return "measured";
    case Origin::kReplayed:
      return "replayed";
    case Origin::kSimulated:
      return "simulated";
    case Origin::kPublished:
      return "published";
    case Origin::kComputed:
      return "computed";
  }
  return "unknown";
}

absl::optional<Origin> FindOrigin(absl::string_view name) {
  for (const Origin o : {Origin::kKey, Origin::kMeasured, Origin::kReplayed, Origin::kSimulated,
                         Origin::kPublished, Origin::kComputed}) {
    if (name == OriginName(o)) return o;
  }
  return absl::nullopt;
}

Origin OriginOf(const Trace& trace) {
  switch (trace.origin) {
    case TraceOrigin::kMeasured:
      return Origin::kMeasured;
    case TraceOrigin::kReplayed:
      return Origin::kReplayed;
    case TraceOrigin::kSimulated:
      break;
  }
  return Origin::kSimulated;
}

Cell Label(std::string text) { return WithText(Origin::kKey, std::move(text)); }
Cell Label(double number) { return Value(Origin::kKey, number); }
Cell Value(Origin origin, double number) {
  Cell c;
  c.origin = origin;
  c.number = number;
  return c;
}
Cell Value(Origin origin, std::string text) { return WithText(origin, std::move(text)); }
Cell Measured(double number) { return Value(Origin::kMeasured, number); }
Cell Replayed(double number) { return Value(Origin::kReplayed, number); }
Cell Simulated(double number) { return Value(Origin::kSimulated, number); }
Cell Computed(double number) { return Value(Origin::kComputed, number); }
Cell Computed(std::string text) { return WithText(Origin::kComputed, std::move(text)); }
Cell Published(double number, std::string tag) {
  Cell c = Value(Origin::kPublished, number);
  c.tag = std::move(tag);
  return c;
}
Cell Missing(std::string reason) {
  Cell c;
  c.missing = true;
  c.note = std::move(reason);
  return c;
}

Table::Table(std::string id, std::string caption)
    : id_(std::move(id)), caption_(std::move(caption)) {
  if (!IsSlug(id_))
    Fail(absl::InvalidArgumentError("the id is not lower case, digits and underscores"));
}

void Table::Fail(absl::Status status) {
  if (status.ok() || !status_.ok()) return;
  status_ = absl::Status(status.code(), absl::StrCat("table '", id_, "': ", status.message()));
}

void Table::AddKey(std::string metric, std::string title) {
  Column c;
  c.title = title.empty() ? metric : std::move(title);
  c.metric = std::move(metric);
  AddColumn(std::move(c));
}

absl::Status Table::CheckColumn(const Column& column) const {
  if (!rows_.empty()) return absl::InvalidArgumentError("a column after the first row");
  if (!IsSlug(column.metric)) {
    return absl::InvalidArgumentError(absl::StrCat("metric '", column.metric, "' of column '",
                                                   column.title,
                                                   "' is not lower case, digits and underscores"));
  }
  for (const Column& c : columns_) {
    if (c.metric == column.metric) {
      return absl::InvalidArgumentError(absl::StrCat("two columns are called '", c.metric, "'"));
    }
  }
  if (column.title.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("column '", column.metric, "' has no title"));
  }
  return absl::OkStatus();
}

void Table::AddColumn(Column column) {
  Fail(CheckColumn(column));
  if (column.brief.empty()) column.brief = column.title;
  columns_.push_back(std::move(column));
}

absl::Status Table::CheckRow(const std::vector<Cell>& cells) const {
  if (cells.size() != columns_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("row ", rows_.size() + 1, " has ", cells.size(),
                                                   " cells for ", columns_.size(), " columns"));
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto wrong = [&](auto... what) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", rows_.size() + 1, ", column '", columns_[i].metric, "': ", what...));
    };
    const Cell& c = cells[i];
    if (c.missing) {
      if (columns_[i].origin == Origin::kKey) return wrong("a key cannot be missing");
      if (c.note.empty()) return wrong("a missing value needs a reason");
      continue;
    }
    if (c.origin != columns_[i].origin) {
      return wrong("a ", OriginName(c.origin), " value among ", OriginName(columns_[i].origin),
                   " ones");
    }
    if (c.origin == Origin::kPublished && c.tag.empty())
      return wrong("a published value needs a tag");
    if (!c.number && c.text.empty()) return wrong("empty; a missing value is Missing(reason)");
  }
  const std::string key = KeyOf(columns_, cells);
  for (const std::vector<Cell>& row : rows_) {
    if (KeyOf(columns_, row) == key) {
      return absl::InvalidArgumentError(absl::StrCat("two rows with the key '", key, "'"));
    }
  }
  return absl::OkStatus();
}

void Table::AddRow(std::vector<Cell> cells) {
  const absl::Status row_status = CheckRow(cells);
  if (!row_status.ok()) {
    Fail(row_status);
    return;
  }
  for (const Cell& c : cells) {
    if (!c.note.empty() && NoteNumber(c) == 0) cell_notes_.push_back(c.note);
  }
  rows_.push_back(std::move(cells));
}

void Table::AddNote(std::string note) { notes_.push_back(std::move(note)); }

void Table::SetVaries() {
  for (Column& column : columns_) column.varies = column.origin != Origin::kKey;
}

std::string Table::RowKey(int row) const { return KeyOf(columns_, rows_[row]); }

int Table::NoteNumber(const Cell& cell) const {
  if (cell.note.empty()) return 0;
  const auto it = std::find(cell_notes_.begin(), cell_notes_.end(), cell.note);
  return it == cell_notes_.end() ? 0 : static_cast<int>(it - cell_notes_.begin()) + 1;
}

std::string Table::CellText(int row, int column) const {
  const Cell& c = rows_[row][column];
  if (c.missing) return "-";
  std::string text = c.number ? FixedNumber(*c.number, columns_[column].decimals) : c.text;
  if (!c.tag.empty()) absl::StrAppend(&text, " (", c.tag, ")");
  return text;
}

}  // namespace pipelab
