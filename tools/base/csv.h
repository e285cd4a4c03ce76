// Reads CSV as RFC 4180 has it: fields in quotes may hold commas, quotes (doubled) and line breaks.
//
//   PIPELAB_ASSIGN_OR_RETURN(CsvTable t, CsvTable::Parse(text, "a/records.csv",
//                                                        {"table", "metric", "value"}));
//   for (const std::vector<std::string>& row : t.rows()) row[t.Column("metric")];
//
// Errors: InvalidArgument, one line with file, line and reason: a header that is another, a row of
// another length, a quote that is not closed.
#ifndef PIPELAB_TOOLS_BASE_CSV_H_
#define PIPELAB_TOOLS_BASE_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

class CsvTable {
 public:
  // `what` names the file; the header must have the columns that are named, in any order.
  static absl::StatusOr<CsvTable> Parse(absl::string_view text, absl::string_view what,
                                        const std::vector<std::string>& columns);

  int Column(absl::string_view name) const;  // CHECKs
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_CSV_H_
