#include "tools/base/json_object.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

using nlohmann::json;

// As an error shows it: whole where it is short.
std::string Brief(const json& value) {
  constexpr size_t kMost = 40;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMost) text = absl::StrCat(text.substr(0, kMost), "...");
  return text;
}

}  // namespace

absl::StatusOr<JsonObject> JsonObject::Make(const json* value, std::string what,
                                            std::string place) {
  if (value->is_object()) return JsonObject(value, std::move(what), std::move(place));
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", place, place.empty() ? "" : ": ",
                                                 Brief(*value), ": must be an object"));
}

std::string JsonObject::PlaceOf(absl::string_view key) const {
  return place_.empty() ? std::string(key) : absl::StrCat(place_, ".", key);
}

absl::Status JsonObject::AllowKeys(std::initializer_list<absl::string_view> known) const {
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return Error(key, "unknown; known here: ", absl::StrJoin(known, ", "), DidYouMean(key, known));
  }
  return absl::OkStatus();
}

bool JsonObject::HasString(absl::string_view key) const {
  const auto it = value_->find(std::string(key));
  return it != value_->end() && it->is_string();
}

bool JsonObject::HasObject(absl::string_view key) const {
  const auto it = value_->find(std::string(key));
  return it != value_->end() && it->is_object();
}

std::vector<std::string> JsonObject::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

absl::StatusOr<const json*> JsonObject::Find(absl::string_view key) const {
  const auto it = value_->find(std::string(key));
  if (it == value_->end()) return Error(key, "missing");
  return &*it;
}

absl::StatusOr<std::string> JsonObject::String(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  if (!value->is_string()) return Error(key, Brief(*value), ": must be a string");
  std::string text = value->get<std::string>();
  if (text.empty()) return Error(key, "must not be empty");
  return text;
}

absl::StatusOr<double> JsonObject::Number(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  if (!value->is_number()) return Error(key, Brief(*value), ": must be a number");
  return value->get<double>();
}

absl::StatusOr<int64_t> JsonObject::Integer(absl::string_view key, int64_t least,
                                            int64_t most) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  // As a double, so that a number beyond int64 is out of range and does not wrap.
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (value->is_number_integer() && number >= static_cast<double>(least) &&
      number <= static_cast<double>(most)) {
    return value->get<int64_t>();
  }
  return Error(key, Brief(*value), ": must be a whole number from ", least, " to ", most);
}

absl::StatusOr<bool> JsonObject::Bool(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  if (!value->is_boolean()) return Error(key, Brief(*value), ": must be true or false");
  return value->get<bool>();
}

absl::StatusOr<JsonObject> JsonObject::Object(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  return Make(value, what_, PlaceOf(key));
}

absl::StatusOr<const json*> JsonObject::List(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* value, Find(key));
  if (!value->is_array()) return Error(key, Brief(*value), ": must be a list");
  return value;
}

absl::StatusOr<std::vector<JsonObject>> JsonObject::Objects(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const json* list, List(key));
  std::vector<JsonObject> objects;
  for (size_t i = 0; i < list->size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(JsonObject object,
                             Make(&(*list)[i], what_, absl::StrCat(PlaceOf(key), "[", i, "]")));
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace pipelab
