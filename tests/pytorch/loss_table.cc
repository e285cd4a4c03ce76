#include "tests/pytorch/loss_table.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kHeader =
    "network,step,loss,gradient_norm,loss_float32_error,gradient_norm_float32_error";

bool ReadNumber(absl::string_view text, double* number) {
  return absl::SimpleAtod(text, number) && std::isfinite(*number) && *number >= 0;
}

bool AddRow(absl::string_view line, LossTable* table) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
  int step = 0;
  LossTableRow row;
  if (cells.size() != 6 || cells[0].empty() || !absl::SimpleAtoi(cells[1], &step) ||
      !ReadNumber(cells[2], &row.loss.value) || !ReadNumber(cells[3], &row.gradient_norm.value) ||
      !ReadNumber(cells[4], &row.loss.float32_error) ||
      !ReadNumber(cells[5], &row.gradient_norm.float32_error)) {
    return false;
  }
  std::vector<LossTableRow>& rows = (*table)[std::string(cells[0])];
  if (step != static_cast<int>(rows.size())) return false;
  rows.push_back(row);
  return true;
}

}  // namespace

absl::StatusOr<LossTable> ParseLossTable(absl::string_view text, absl::string_view file) {
  LossTable table;
  bool in_rows = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    if (in_rows ? AddRow(line, &table) : line == kHeader) {
      in_rows = true;
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", number, ": \"", line, "\"; must be ",
                     in_rows ? "a network, its next step and four numbers from 0 on" : kHeader));
  }
  if (table.empty()) return absl::InvalidArgumentError(absl::StrCat(file, ": has no rows"));
  return table;
}

absl::StatusOr<LossTable> ReadLossTable(absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseLossTable(text, path);
}

}  // namespace pipelab
