#include "tools/base/json.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

struct Excess {
  size_t byte = 0;     // where it begins
  std::string reason;  // empty: there is none
};

// Values are counted by commas and by lists and objects that are not empty. Strings are skipped;
// other faults are the parser's.
Excess ExcessOf(absl::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return {limits.bytes, absl::StrCat("more than ", limits.bytes, " bytes")};
  }
  int depth = 0;
  int64_t values = 1;
  bool in_string = false;
  char before = 0;  // the last character that is no space
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.depth) {
        return {i, absl::StrCat("nested deeper than ", limits.depth, " levels")};
      }
      ++values;
    } else if (c == ']' || c == '}') {
      --depth;
      if (before == '[' || before == '{') --values;
    } else if (c == ',' && ++values > limits.values) {
      return {i, absl::StrCat("more than ", limits.values, " values")};
    }
    if (!absl::ascii_isspace(c)) before = c;
  }
  return {};
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

// Builds the value itself: where the parser has a callback, it looks through a whole list again at
// each end of an object in it.
class JsonBuilder : public json::json_sax_t {
 public:
  json value;
  std::string twice;       // the first key that stands twice in one object
  bool too_large = false;  // a number, which has no position
  size_t fault_at = 0;     // bytes read up to the first fault
  std::string fault;

  bool null() override { return Add(nullptr); }
  bool boolean(bool v) override { return Add(v); }
  bool number_integer(json::number_integer_t v) override { return Add(v); }
  bool number_unsigned(json::number_unsigned_t v) override { return Add(v); }
  bool number_float(json::number_float_t v, const std::string&) override { return Add(v); }
  bool string(std::string& v) override { return Add(std::move(v)); }
  bool binary(json::binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override { return Open(json::value_t::object); }
  bool start_array(size_t) override { return Open(json::value_t::array); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    auto& object = open_.back()->get_ref<json::object_t&>();
    const auto [at, is_new] = object.emplace(std::move(name), nullptr);
    if (!is_new && twice.empty()) twice = at->first;
    member_ = &at->second;
    return true;
  }
  bool parse_error(size_t bytes, const std::string&, const json::exception& e) override {
    fault_at = bytes;
    fault = ParserReason(e);
    too_large = dynamic_cast<const json::parse_error*>(&e) == nullptr;
    return false;
  }

 private:
  json* Place(json v) {
    json* at = member_;
    if (open_.empty()) {
      at = &value;
    } else if (open_.back()->is_array()) {
      open_.back()->push_back(nullptr);
      at = &open_.back()->back();
    }
    *at = std::move(v);
    return at;
  }
  bool Add(json v) {
    Place(std::move(v));
    return true;
  }
  bool Open(json::value_t type) {
    open_.push_back(Place(json(type)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  std::vector<json*> open_;
  json* member_ = nullptr;  // whose value comes next
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

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view what,
                               const JsonLimits& limits) {
  if (absl::StripAsciiWhitespace(text).empty()) return ErrorAt(text, 0, what, "it is empty");
  const Excess excess = ExcessOf(text, limits);
  if (!excess.reason.empty()) return ErrorAt(text, excess.byte, what, excess.reason);
  JsonBuilder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.twice.empty()) return std::move(builder.value);
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": \"", builder.twice, "\" comes twice in one object"));
  }
  if (builder.too_large) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": not JSON: a number is too large for a double"));
  }
  return ErrorAt(text, builder.fault_at > 0 ? builder.fault_at - 1 : 0, what, builder.fault);
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
