#include "models/data/r_columns.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status BadColumn(absl::string_view what, absl::string_view name, absl::string_view fault) {
  return absl::DataLossError(absl::StrCat(what, ": column '", name, "' ", fault));
}

absl::StatusOr<const RValue*> Column(const RValue& frame, absl::string_view name,
                                     absl::string_view what) {
  const RValue* column = frame.Element(name);
  if (column == nullptr) return BadColumn(what, name, "is not there");
  return column;
}

}  // namespace

absl::StatusOr<std::vector<double>> Numbers(const RValue& value, absl::string_view name,
                                            absl::string_view what) {
  if (value.type == RType::kDouble) return value.doubles;
  if (value.type != RType::kInteger || value.Attribute("levels") != nullptr) {
    return BadColumn(what, name, absl::StrCat("is ", RTypeName(value.type), ", not numbers"));
  }
  std::vector<double> numbers;
  for (const int32_t v : value.integers) {
    numbers.push_back(v == kRMissingInteger ? std::numeric_limits<double>::quiet_NaN() : v);
  }
  return numbers;
}

absl::StatusOr<std::vector<double>> NumberColumn(const RValue& frame, absl::string_view name,
                                                 absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const RValue* column, Column(frame, name, what));
  return Numbers(*column, name, what);
}

absl::StatusOr<std::vector<std::string>> StringColumn(const RValue& frame, absl::string_view name,
                                                      absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const RValue* column, Column(frame, name, what));
  auto strings = FactorStrings(*column);
  if (!strings.ok()) return BadColumn(what, name, strings.status().message());
  return strings;
}

}  // namespace pipelab
