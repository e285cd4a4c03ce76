#include "models/data/cox2.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/r_columns.h"
#include "models/data/r_serialization.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Columns by family, families in the order of their first columns.
struct Grouping {
  std::vector<std::string> names;
  std::vector<std::vector<size_t>> columns;
};

absl::StatusOr<Grouping> GroupColumns(const std::vector<std::string>& names,
                                      absl::string_view what) {
  Grouping grouping;
  for (size_t c = 0; c < names.size(); ++c) {
    const std::string family = names[c].substr(0, names[c].find('_'));
    if (family.empty() || family == kTargets) {
      return absl::DataLossError(
          absl::StrCat(what, ": descriptor '", names[c], "' names no family"));
    }
    const auto at = std::find(grouping.names.begin(), grouping.names.end(), family);
    const size_t f = static_cast<size_t>(at - grouping.names.begin());
    if (at == grouping.names.end()) {
      grouping.names.push_back(family);
      grouping.columns.emplace_back();
    }
    grouping.columns[f].push_back(c);
  }
  return grouping;
}

absl::StatusOr<std::vector<double>> ReadColumn(const RValue& value, const std::string& name,
                                               size_t compounds, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<double> column, Numbers(value, name, what));
  if (column.size() != compounds) {
    return absl::DataLossError(absl::StrFormat("%s: column '%s' has %d compounds, 'cox2IC50' %d",
                                               what, name, column.size(), compounds));
  }
  for (size_t i = 0; i < compounds; ++i) {
    if (std::isfinite(column[i])) continue;
    return absl::DataLossError(
        absl::StrFormat("%s: column '%s', row %d: %g", what, name, i + 1, column[i]));
  }
  return column;
}

}  // namespace

const DebianPackage& CaretPackage() {
  static const auto& package =
      *new DebianPackage{"r-cran-caret", "6.0-93+dfsg-1",
                         "8225d86fd41959ba6c4314b0b3df39ff2f93fb5cd0218500bf4dc4f4d684151a"};
  return package;
}

absl::StatusOr<DescriptorTable> Cox2FromValues(const RValue& values, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> ic50, NumberColumn(values, "cox2IC50", what));
  const RValue* frame = values.Element("cox2Descr");
  if (frame == nullptr || frame->type != RType::kList || frame->elements.empty() || ic50.empty()) {
    return absl::DataLossError(absl::StrCat(what, ": no table 'cox2Descr' with compounds"));
  }
  const std::vector<std::string> names = ElementNames(*frame);
  PIPELAB_ASSIGN_OR_RETURN(const Grouping grouping, GroupColumns(names, what));
  DescriptorTable table;
  table.name = "cox2";
  std::vector<std::vector<double>> columns;
  for (size_t f = 0; f < grouping.names.size(); ++f) {
    const int64_t count = static_cast<int64_t>(grouping.columns[f].size());
    table.families.push_back({grouping.names[f], table.columns, count});
    table.columns += count;
    for (const size_t c : grouping.columns[f]) {
      PIPELAB_ASSIGN_OR_RETURN(std::vector<double> column,
                               ReadColumn(frame->elements[c], names[c], ic50.size(), what));
      columns.push_back(std::move(column));
    }
  }
  for (size_t i = 0; i < ic50.size(); ++i) {
    for (const std::vector<double>& column : columns) {
      table.values.push_back(static_cast<float>(column[i]));
    }
    if (!(ic50[i] > 0) || !std::isfinite(ic50[i])) {
      return absl::DataLossError(
          absl::StrFormat("%s: 'cox2IC50', row %d: %g; it must be above 0", what, i + 1, ic50[i]));
    }
    table.targets.push_back(static_cast<float>(std::log10(ic50[i])));
  }
  return table;
}

absl::StatusOr<DescriptorTable> LoadCox2(absl::string_view package_dir) {
  const std::string path = JoinPath(package_dir, "usr/lib/R/site-library/caret/data/cox2.RData");
  PIPELAB_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, int64_t{64} << 20));
  PIPELAB_ASSIGN_OR_RETURN(const RValue values, ReadRData(file, path));
  return Cox2FromValues(values, path);
}

absl::StatusOr<DescriptorTable> FetchCox2(absl::string_view cache_dir,
                                          const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(CaretPackage(), cache_dir, options));
  return LoadCox2(dir);
}

}  // namespace pipelab
