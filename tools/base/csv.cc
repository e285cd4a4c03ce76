#include "tools/base/csv.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

struct Record {
  int line = 1;  // on which it begins
  std::vector<std::string> fields;
};

// Records of the text; empty lines are none.
absl::StatusOr<std::vector<Record>> Records(absl::string_view text, absl::string_view what) {
  std::vector<Record> records;
  int line = 1, quote_line = 0;
  bool quoted = false, begun = false;
  const auto begin = [&] {
    if (begun) return;
    records.push_back({line, {""}});
    begun = true;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      records.back().fields.back() += c;
      ++i;
    } else if (c == '"') {
      begin();
      quoted = !quoted;
      quote_line = line;
    } else if (!quoted && c == ',') {
      begin();
      records.back().fields.emplace_back();
    } else if (!quoted && c == '\n') {
      begun = false;
    } else if (quoted || c != '\r') {
      begin();
      records.back().fields.back() += c;
    }
    if (c == '\n') ++line;
  }
  if (quoted) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ":", quote_line, ": a quote that is not closed"));
  }
  return records;
}

}  // namespace

absl::StatusOr<CsvTable> CsvTable::Parse(absl::string_view text, absl::string_view what,
                                         const std::vector<std::string>& columns) {
  auto records = Records(text, what);
  if (!records.ok()) return records.status();
  if (records->empty()) return absl::InvalidArgumentError(absl::StrCat(what, ": is empty"));
  CsvTable table;
  table.header_ = std::move(records->front().fields);
  for (const std::string& column : columns) {
    if (std::count(table.header_.begin(), table.header_.end(), column) == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ":1: the header must have a column '", column, "'"));
  }
  for (size_t i = 1; i < records->size(); ++i) {
    Record& record = (*records)[i];
    if (record.fields.size() != table.header_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(what, ":", record.line, ": ",
                                                     record.fields.size(), " fields under ",
                                                     table.header_.size(), " titles"));
    }
    table.rows_.push_back(std::move(record.fields));
  }
  return table;
}

int CsvTable::Column(absl::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  CHECK(it != header_.end()) << name;
  return static_cast<int>(it - header_.begin());
}

}  // namespace pipelab
