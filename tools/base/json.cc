#include "tools/base/json.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 200;

// The byte where brackets nest too deep, or npos. Strings are skipped; other faults are the
// parser's.
size_t TooDeepAt(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return absl::string_view::npos;
}

absl::Status ErrorAt(absl::string_view text, size_t byte, absl::string_view what,
                     absl::string_view message) {
  const absl::string_view before = text.substr(0, std::min(byte, text.size()));
  const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column =
      1 + (newline == absl::string_view::npos ? before.size() : before.size() - newline - 1);
  return absl::InvalidArgumentError(
      absl::StrFormat("%s:%d:%d: not JSON: %s", what, line, column, message));
}

// The parser's reason without its own prefix "[json.exception...] parse error at line ..., column
// ...: ".
std::string ParserReason(const json::exception& e) {
  absl::string_view text = e.what();
  const size_t colon = text.find(": ");
  if (colon != absl::string_view::npos) text.remove_prefix(colon + 2);
  return absl::StrReplaceAll(text, {{"\n", " "}});
}

// Notes a key that stands twice in one object, of which the parser would take the last.
struct KeyWatch {
  bool operator()(int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!open.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  }
  std::vector<std::set<std::string>> open;
  std::string twice;
};

template <typename T>
bool Holds(const json& v);
template <>
bool Holds<bool>(const json& v) {
  return v.is_boolean();
}
template <>
bool Holds<double>(const json& v) {
  return v.is_number();
}
template <>
bool Holds<std::string>(const json& v) {
  return v.is_string();
}
template <>
bool Holds<json>(const json&) {
  return true;
}
template <>
bool Holds<int64_t>(const json& v) {
  if (v.is_number_unsigned()) {
    return v.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return v.is_number_integer();
}

template <typename T>
constexpr const char* kTypeName = "a value";
template <>
constexpr const char* kTypeName<bool> = "true or false";
template <>
constexpr const char* kTypeName<double> = "a number";
template <>
constexpr const char* kTypeName<int64_t> = "a whole number";
template <>
constexpr const char* kTypeName<std::string> = "a string";

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view what) {
  if (absl::StripAsciiWhitespace(text).empty()) return ErrorAt(text, 0, what, "it is empty");
  const size_t deep = TooDeepAt(text);
  if (deep != absl::string_view::npos) {
    return ErrorAt(text, deep, what, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
  }
  try {
    KeyWatch watch;
    json value = json::parse(text.begin(), text.end(), std::ref(watch));
    if (watch.twice.empty()) return value;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": \"", watch.twice, "\" comes twice in one object"));
  } catch (const json::parse_error& e) {
    return ErrorAt(text, e.byte > 0 ? e.byte - 1 : 0, what,
                   ParserReason(e));  // e.byte counts from 1
  } catch (const json::exception&) {  // a number outside double has no position
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": not JSON: a number is too large for a double"));
  }
}

std::string DumpJson(const json& value) {
  return value.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

template <typename T>
absl::StatusOr<T> JsonField(const json& object, absl::string_view key, absl::string_view what) {
  const auto error = [&](absl::string_view fault) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": field '", key, "': ", fault, "; it must be ", kTypeName<T>));
  };
  if (!object.is_object()) return error("looked for outside an object");
  const auto it = object.find(std::string(key));
  if (it == object.end()) return error("missing");
  if (!Holds<T>(*it)) {
    const std::string found = it->dump(-1, ' ', false, json::error_handler_t::replace);
    return error(absl::StrCat("is ", found.substr(0, 40)));
  }
  return it->get<T>();
}

template absl::StatusOr<bool> JsonField(const json&, absl::string_view, absl::string_view);
template absl::StatusOr<int64_t> JsonField(const json&, absl::string_view, absl::string_view);
template absl::StatusOr<double> JsonField(const json&, absl::string_view, absl::string_view);
template absl::StatusOr<std::string> JsonField(const json&, absl::string_view, absl::string_view);
template absl::StatusOr<json> JsonField(const json&, absl::string_view, absl::string_view);

}  // namespace pipelab
