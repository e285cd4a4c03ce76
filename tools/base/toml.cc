#include "tools/base/toml.h"

#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
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

// toml++ bounds how deep values nest.
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
