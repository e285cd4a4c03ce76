#include "tools/base/toml.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

// toml++ 3.3 asserts, and without assertions lets the compiler assume, that a key follows "[". It
// is wrong there of damaged files, which it then refuses in words; so it may do neither.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include "toml++/toml.h"
#undef TOML_ASSERT
#pragma pop_macro("NDEBUG")

namespace pipelab {
namespace {

using nlohmann::json;

// toml++ bounds how deep values nest, but each part of a key nests a table, too.
constexpr int kMostParts = 64;
// Values take more than a hundred times the memory of their text.
constexpr size_t kMostText = 1 << 20;

// The first line, from 1, with a key of more parts; 0: none.
int64_t LineOfLongKey(absl::string_view text) {
  int64_t line = 1;
  int dots = 0;
  absl::string_view quote;  // that ends the string which this is in
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view rest = text.substr(i);
    if (text[i] == '\n') ++line;
    if (!quote.empty()) {
      if (text[i] == '\\' && quote[0] == '"') {
        ++i;
        line += i < text.size() && text[i] == '\n';
      } else if (absl::StartsWith(rest, quote)) {
        i += quote.size() - 1;
        quote = "";
      }
      continue;
    }
    for (const absl::string_view begin : {"\"\"\"", "'''", "\"", "'"}) {
      if (!absl::StartsWith(rest, begin)) continue;
      quote = begin;
      i += begin.size() - 1;
      break;
    }
    if (!quote.empty()) continue;
    if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text[i] == '.') {
      if (++dots >= kMostParts) return line;
    } else if (absl::string_view("\n=,[]{}").find(text[i]) != absl::string_view::npos) {
      dots = 0;
    }
  }
  return 0;
}

json Value(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    json object = json::object();
    for (const auto& [key, value] : *table) object[std::string(key.str())] = Value(value);
    return object;
  }
  if (const toml::array* array = node.as_array()) {
    json list = json::array();
    for (const toml::node& value : *array) list.push_back(Value(value));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* number = node.as_floating_point()) {
    return std::isfinite(number->get()) ? json(number->get()) : json();
  }
  std::ostringstream text;
  if (const auto* date = node.as_date()) text << date->get();
  if (const auto* time = node.as_time()) text << time->get();
  if (const auto* both = node.as_date_time()) text << both->get();
  return text.str();
}

}  // namespace

absl::StatusOr<json> ParseToml(absl::string_view text, absl::string_view what) {
  if (text.size() > kMostText) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": is longer than 1 MiB"));
  }
  if (const int64_t line = LineOfLongKey(text); line > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ":", line, ": not TOML: a key of more than ", kMostParts, " parts"));
  }
  const toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()));
  if (parsed) return Value(parsed.table());
  const toml::parse_error& error = parsed.error();
  const std::string reason =
      absl::StrReplaceAll(std::string(error.description()), {{"\n", " "}, {"\r", " "}});
  return absl::InvalidArgumentError(absl::StrCat(what, ":", error.source().begin.line, ":",
                                                 error.source().begin.column,
                                                 ": not TOML: ", reason));
}

}  // namespace pipelab
