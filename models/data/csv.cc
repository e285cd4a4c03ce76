#include "models/data/csv.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostColumns = size_t{1} << 16, kMostShown = 40;

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view what) : rest_(text), what_(what) {}

  absl::StatusOr<DataTable> Read() {
    DataTable table;
    while (NextLine()) {
      PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> cells, Cells());
      if (table.columns.empty()) {
        PIPELAB_RETURN_IF_ERROR(CheckHeader(cells));
        table.columns = std::move(cells);
      } else {
        PIPELAB_RETURN_IF_ERROR(AddRow(cells, &table));
      }
    }
    if (table.columns.empty()) return Error("empty; must begin with a line of column names");
    if (table.values.empty()) return Error("has column names and no row of numbers");
    return table;
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", parts...));
  }
  template <typename... Parts>
  absl::Status LineError(const Parts&... parts) const {
    return Error("line ", number_, parts...);
  }

  // The next line that is not empty.
  bool NextLine() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
      if (!absl::StripAsciiWhitespace(line_).empty()) return true;
    }
    return false;
  }

  absl::StatusOr<std::vector<std::string>> Cells() const {
    std::vector<std::string> cells;
    absl::string_view rest = line_;
    while (true) {
      std::string& cell = cells.emplace_back();
      const absl::string_view begun = absl::StripLeadingAsciiWhitespace(rest);
      if (!begun.empty() && begun.front() == '"') {
        rest = begun;
        if (!TakeQuoted(&rest, &cell)) {
          return LineError(": cell ", cells.size(),
                           " has a quote that does not end before a comma");
        }
      } else {
        const size_t comma = std::min(rest.find(','), rest.size());
        cell = std::string(absl::StripAsciiWhitespace(rest.substr(0, comma)));
        rest.remove_prefix(comma);
      }
      if (rest.empty()) return cells;
      rest.remove_prefix(1);
      if (cells.size() == kMostColumns) return LineError(": more than ", kMostColumns, " cells");
    }
  }

  // Up to the comma behind the closing quote, or the line's end.
  static bool TakeQuoted(absl::string_view* rest, std::string* cell) {
    size_t i = 1;
    for (; i < rest->size(); ++i) {
      if ((*rest)[i] == '"') {
        if (i + 1 == rest->size() || (*rest)[i + 1] != '"') break;
        ++i;
      }
      cell->push_back((*rest)[i]);
    }
    if (i == rest->size()) return false;
    *rest = absl::StripLeadingAsciiWhitespace(rest->substr(i + 1));
    return rest->empty() || rest->front() == ',';
  }

  absl::Status CheckHeader(const std::vector<std::string>& names) const {
    std::set<absl::string_view> seen;
    double number = 0;
    bool all_numbers = true;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) return LineError(": column ", i + 1, " has no name");
      if (!seen.insert(names[i]).second) {
        return LineError(": two columns are called \"", names[i], "\"");
      }
      all_numbers = all_numbers && absl::SimpleAtod(names[i], &number);
    }
    if (!all_numbers) return absl::OkStatus();
    return LineError(": all cells are numbers; the first line must name the columns");
  }

  absl::Status AddRow(const std::vector<std::string>& cells, DataTable* table) const {
    if (cells.size() != table->columns.size()) {
      return LineError(": ", cells.size(), " cells; the header has ", table->columns.size(),
                       " columns");
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      double value = 0;
      if (absl::SimpleAtod(cells[i], &value) && std::isfinite(static_cast<float>(value))) {
        table->values.push_back(static_cast<float>(value));
        continue;
      }
      return LineError(", column \"", table->columns[i], "\": \"", cells[i].substr(0, kMostShown),
                       "\": must be a number");
    }
    return absl::OkStatus();
  }

  absl::string_view rest_, line_;
  const absl::string_view what_;
  int64_t number_ = 0;
};

}  // namespace

int64_t DataTable::Find(absl::string_view column) const {
  const auto it = std::find(columns.begin(), columns.end(), column);
  return it == columns.end() ? -1 : it - columns.begin();
}

absl::StatusOr<DataTable> ParseCsv(absl::string_view text, absl::string_view what) {
  return Reader(text, what).Read();
}

}  // namespace pipelab
