// Enumerators and the names that files and options have for them.
//
//   constexpr std::array<std::pair<Colour, const char*>, 2> kColours = {
//       {{Colour::kRed, "red"}, {Colour::kBlue, "blue"}}};
//   NameInTable(kColours, Colour::kRed);                     // "red"
//   FindInTable(kColours, "green");      // "\"green\" is unknown; there are red, blue"
#ifndef PIPELAB_TOOLS_BASE_NAME_TABLE_H_
#define PIPELAB_TOOLS_BASE_NAME_TABLE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {

template <typename Table, typename Kind>
const char* NameInTable(const Table& table, Kind kind) {
  for (const auto& [value, name] : table) {
    if (value == kind) return name;
  }
  return "?";
}

template <typename Table>
absl::StatusOr<typename Table::value_type::first_type> FindInTable(const Table& table,
                                                                   absl::string_view wanted) {
  std::vector<absl::string_view> names;
  for (const auto& [value, name] : table) {
    if (name == wanted) return value;
    names.push_back(name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", wanted, "\" is unknown", NearestOrAll(wanted, names)));
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_NAME_TABLE_H_
