#include "experiments/predict/measured_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "tools/base/name_table.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct IntegerColumn {
  absl::string_view title;
  int64_t MeasuredRow::*field;
  int64_t most;
};

// What may follow; the status says what would be right.
struct FurtherColumn {
  absl::string_view title;
  absl::Status (*read)(absl::string_view cell, MeasuredRow* row);
};

constexpr int64_t kMostDevices = 1 << 20, kMostSize = 1 << 24;

constexpr std::array<IntegerColumn, 10> kColumns = {
    {{"# GPUs", &MeasuredRow::gpus, kMostDevices},
     {"global batch", &MeasuredRow::batch, kMostSize},
     {"micro batch", &MeasuredRow::micro_batch, kMostSize},
     {"hidden size", &MeasuredRow::hidden, kMostSize},
     {"attention heads", &MeasuredRow::heads, kMostSize},
     {"# layers", &MeasuredRow::layers, kMostDevices},
     {"sequence length", &MeasuredRow::tokens, kMostSize},
     {"tensor parallelism", &MeasuredRow::tensor, kMostDevices},
     {"data parallelism", &MeasuredRow::data, kMostDevices},
     {"pipeline parallelism", &MeasuredRow::pipeline, kMostDevices}}};
constexpr std::array<std::pair<AttentionImplementation, const char*>, 2> kAttention = {
    {{AttentionImplementation::kUnfused, "unfused"}, {AttentionImplementation::kFused, "fused"}}};
constexpr absl::string_view kTime = "iteration time (ms)";

absl::Status ReadInteger(absl::string_view cell, int64_t most, int64_t* value) {
  if (absl::SimpleAtoi(cell, value) && *value >= 1 && *value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("must be a whole number from 1 to ", most));
}

const std::array<FurtherColumn, 6> kFurther = {
    {{"recompute",
      [](absl::string_view cell, MeasuredRow* row) -> absl::Status {
        PIPELAB_ASSIGN_OR_RETURN(row->recompute, FindRecompute(cell));
        return absl::OkStatus();
      }},
     {"attention",
      [](absl::string_view cell, MeasuredRow* row) -> absl::Status {
        PIPELAB_ASSIGN_OR_RETURN(row->attention, FindInTable(kAttention, cell));
        return absl::OkStatus();
      }},
     {"virtual_stages",
      [](absl::string_view cell, MeasuredRow* row) {
        return ReadInteger(cell, kMostDevices, &row->virtual_stages);
      }},
     {"scheme",
      [](absl::string_view cell, MeasuredRow* row) {
        row->scheme = std::string(cell);
        return absl::OkStatus();
      }},
     {"sharding",
      [](absl::string_view cell, MeasuredRow* row) -> absl::Status {
        if (cell == "none") return absl::OkStatus();
        PIPELAB_ASSIGN_OR_RETURN(row->sharding, ParseSharding(cell, "sharding"));
        return absl::OkStatus();
      }},
     {"vocabulary", [](absl::string_view cell, MeasuredRow* row) {
        return ReadInteger(cell, kMostSize, &row->vocabulary);
      }}}};

// Where an error is.
struct Place {
  absl::string_view what;
  int line;

  template <typename... Parts>
  absl::Status Error(absl::string_view column, const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": line ", line, ": ", column, ": ", parts...));
  }
};

std::vector<absl::string_view> Cells(absl::string_view line) {
  std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
  for (absl::string_view& cell : cells) cell = absl::StripAsciiWhitespace(cell);
  return cells;
}

std::string Titles() {
  return absl::StrCat(absl::StrJoin(kColumns, ",",
                                    [](std::string* out, const IntegerColumn& c) {
                                      absl::StrAppend(out, c.title);
                                    }),
                      ",", kTime);
}

// What a file's columns are.
struct Columns {
  size_t front = 0;  // columns before the header's own: 0 or 1
  std::vector<const FurtherColumn*> further;

  size_t time() const { return front + kColumns.size(); }
  size_t size() const { return time() + 1 + further.size(); }
};

absl::StatusOr<Columns> ReadHeader(absl::string_view line, const Place& place) {
  const std::vector<absl::string_view> titles = Cells(line);
  Columns columns;
  columns.front = absl::StrContains(absl::AsciiStrToLower(titles[0]), "param") ? 1 : 0;
  bool right = titles.size() > columns.time() && titles[columns.time()] == kTime;
  for (size_t i = 0; right && i < kColumns.size(); ++i) {
    right = titles[columns.front + i] == kColumns[i].title;
  }
  if (!right) {
    return place.Error("header", "must be \"", Titles(),
                       "\"; a column of parameters may stand in front");
  }
  for (size_t i = columns.time() + 1; i < titles.size(); ++i) {
    const auto found = std::find_if(kFurther.begin(), kFurther.end(),
                                    [&](const FurtherColumn& c) { return c.title == titles[i]; });
    if (found == kFurther.end()) {
      return place.Error(
          "header", "\"", titles[i], "\": unknown; after ", kTime, " may follow ",
          absl::StrJoin(kFurther, ", ", [](std::string* out, const FurtherColumn& c) {
            absl::StrAppend(out, c.title);
          }));
    }
    if (std::find(columns.further.begin(), columns.further.end(), found) != columns.further.end()) {
      return place.Error("header", "\"", titles[i], "\": is there twice");
    }
    columns.further.push_back(found);
  }
  return columns;
}

absl::Status Divides(const Place& place, absl::string_view column, int64_t part,
                     absl::string_view whole_name, int64_t whole) {
  if (whole % part == 0) return absl::OkStatus();
  return place.Error(column, part, " does not divide the ", whole_name, ", ", whole);
}

absl::Status CheckRow(const MeasuredRow& r, const Place& place) {
  if (r.gpus / r.tensor / r.data != r.pipeline || r.tensor * r.data * r.pipeline != r.gpus) {
    return place.Error("# GPUs", r.gpus, " is not tensor x data x pipeline parallelism, ", r.tensor,
                       " x ", r.data, " x ", r.pipeline);
  }
  PIPELAB_RETURN_IF_ERROR(Divides(place, "data parallelism", r.data, "global batch", r.batch));
  PIPELAB_RETURN_IF_ERROR(Divides(place, "micro batch", r.micro_batch,
                                  "batch of one of the data-parallel groups", r.batch / r.data));
  PIPELAB_RETURN_IF_ERROR(Divides(place, "attention heads", r.heads, "hidden size", r.hidden));
  PIPELAB_RETURN_IF_ERROR(
      Divides(place, "tensor parallelism", r.tensor, "attention heads", r.heads));
  return Divides(place, "pipeline parallelism", r.pipeline, "layers", r.layers);
}

absl::StatusOr<MeasuredRow> ReadRow(absl::string_view line, const Columns& columns,
                                    const Place& place) {
  const std::vector<absl::string_view> cells = Cells(line);
  if (cells.size() != columns.size()) {
    return place.Error("columns", cells.size(), "; the header has ", columns.size());
  }
  MeasuredRow row;
  row.line = place.line;
  row.text = std::string(line);
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const IntegerColumn& column = kColumns[i];
    const absl::string_view cell = cells[columns.front + i];
    const absl::Status read = ReadInteger(cell, column.most, &(row.*column.field));
    if (!read.ok()) return place.Error(column.title, "\"", cell, "\": ", read.message());
  }
  for (size_t i = 0; i < columns.further.size(); ++i) {
    const absl::string_view cell = cells[columns.time() + 1 + i];
    if (cell.empty()) continue;
    const absl::Status read = columns.further[i]->read(cell, &row);
    if (!read.ok())
      return place.Error(columns.further[i]->title, "\"", cell, "\": ", read.message());
  }
  if (const absl::string_view cell = cells[columns.time()]; !cell.empty()) {
    double time = 0;
    if (!absl::SimpleAtod(cell, &time) || !(time > 0 && std::isfinite(time))) {
      return place.Error(kTime, "\"", cell,
                         "\": must be a number above 0, or empty where nothing was measured");
    }
    row.milliseconds = time;
  }
  PIPELAB_RETURN_IF_ERROR(CheckRow(row, place));
  return row;
}

}  // namespace

absl::StatusOr<MeasuredRows> ParseMeasuredRows(absl::string_view text, absl::string_view what) {
  MeasuredRows rows;
  Columns columns;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const Place place = {what, ++number};
    line = absl::StripSuffix(line, "\r");
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (rows.header.empty()) {
      PIPELAB_ASSIGN_OR_RETURN(columns, ReadHeader(line, place));
      rows.header = std::string(line);
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(MeasuredRow row, ReadRow(line, columns, place));
    rows.rows.push_back(std::move(row));
  }
  if (rows.rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": has ", rows.header.empty() ? "no header and no row" : "no row",
                     "; must begin with \"", Titles(), "\""));
  }
  return rows;
}

std::string WithColumns(const MeasuredRows& rows, const std::vector<std::string>& titles,
                        const std::vector<std::vector<std::string>>& cells) {
  CHECK_EQ(cells.size(), rows.rows.size());
  std::string text = absl::StrCat(rows.header, ",", absl::StrJoin(titles, ","), "\n");
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&text, rows.rows[i].text, ",", absl::StrJoin(cells[i], ","), "\n");
  }
  return text;
}

}  // namespace pipelab
