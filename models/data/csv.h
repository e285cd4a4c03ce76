// Tables of numbers with a header line, as spreadsheets write them.
//
//   PIPELAB_ASSIGN_OR_RETURN(DataTable table, ParseCsv(text, "--data=houses.csv"));
//   table.Value(/*row=*/0, table.Find("price"));
//
// Cells are parted by commas; those in double quotes may hold commas, and "" is one quote. Lines
// end with \n or \r\n; empty ones are skipped. RFC 4180, but for line breaks inside of quotes.
//
// Errors: InvalidArgument, one line with file, line (from 1) and column: "--data=houses.csv: line
// 3, column "rooms": "four": must be a number".
#ifndef PIPELAB_MODELS_DATA_CSV_H_
#define PIPELAB_MODELS_DATA_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct DataTable {
  std::vector<std::string> columns;  // names, each once
  std::vector<float> values;         // [row, column], all finite

  int64_t width() const { return static_cast<int64_t>(columns.size()); }
  int64_t rows() const {
    return columns.empty() ? 0 : static_cast<int64_t>(values.size()) / width();
  }
  float Value(int64_t row, int64_t column) const { return values[row * width() + column]; }
  int64_t Find(absl::string_view column) const;  // or -1
};

// `what` names the file in errors. A header and at least one row.
absl::StatusOr<DataTable> ParseCsv(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CSV_H_
