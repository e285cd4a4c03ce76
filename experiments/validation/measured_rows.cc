#include "experiments/validation/measured_rows.h"

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
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct IntegerColumn {
  absl::string_view title;
  int64_t MeasuredRow::*field;
  int64_t most;
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
constexpr absl::string_view kTime = "iteration time (ms)";

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

// How many columns stand in front of the header's own: 0 or 1.
absl::StatusOr<size_t> ReadHeader(absl::string_view line, const Place& place) {
  const std::vector<absl::string_view> titles = Cells(line);
  const size_t extra = titles.size() == kColumns.size() + 2 ? 1 : 0;
  bool right = titles.size() == kColumns.size() + 1 + extra && titles.back() == kTime;
  for (size_t i = 0; right && i < kColumns.size(); ++i) {
    right = titles[i + extra] == kColumns[i].title;
  }
  if (right && extra == 1) {
    right = absl::StrContains(absl::AsciiStrToLower(titles[0]), "param");
  }
  if (right) return extra;
  return place.Error("header", "must be \"", Titles(),
                     "\"; a column of parameters may stand in front");
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

absl::StatusOr<MeasuredRow> ReadRow(absl::string_view line, size_t extra, const Place& place) {
  const std::vector<absl::string_view> cells = Cells(line);
  if (cells.size() != kColumns.size() + 1 + extra) {
    return place.Error("columns", cells.size(), "; the header has ", kColumns.size() + 1 + extra);
  }
  MeasuredRow row;
  row.line = place.line;
  row.text = std::string(line);
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const IntegerColumn& column = kColumns[i];
    const absl::string_view cell = cells[i + extra];
    if (!absl::SimpleAtoi(cell, &(row.*column.field)) || row.*column.field < 1 ||
        row.*column.field > column.most) {
      return place.Error(column.title, "\"", cell, "\": must be a whole number from 1 to ",
                         column.most);
    }
  }
  if (!cells.back().empty()) {
    double time = 0;
    if (!absl::SimpleAtod(cells.back(), &time) || !(time > 0 && std::isfinite(time))) {
      return place.Error(kTime, "\"", cells.back(),
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
  size_t extra = 0;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const Place place = {what, ++number};
    line = absl::StripSuffix(line, "\r");
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (rows.header.empty()) {
      PIPELAB_ASSIGN_OR_RETURN(extra, ReadHeader(line, place));
      rows.header = std::string(line);
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(MeasuredRow row, ReadRow(line, extra, place));
    rows.rows.push_back(std::move(row));
  }
  if (rows.rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": has ", rows.header.empty() ? "no header and no row" : "no row",
                     "; must begin with \"", Titles(), "\""));
  }
  return rows;
}

std::string WithColumn(const MeasuredRows& rows, absl::string_view title,
                       const std::vector<std::string>& cells) {
  CHECK_EQ(cells.size(), rows.rows.size());
  std::string text = absl::StrCat(rows.header, ",", title, "\n");
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&text, rows.rows[i].text, ",", cells[i], "\n");
  }
  return text;
}

}  // namespace pipelab
