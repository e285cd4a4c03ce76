// Objects of a JSON file, read field by field: every error names the file, the place and what would
// be right, and a key that nobody knows is refused.
//
//   PIPELAB_ASSIGN_OR_RETURN(json root, ParseJson(text, "--cluster=a.json"));
//   PIPELAB_ASSIGN_OR_RETURN(JsonObject file, JsonObject::Root(root, "--cluster=a.json"));
//   PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"name", "device"}));
//   PIPELAB_ASSIGN_OR_RETURN(JsonObject device, file.Object("device"));
//   PIPELAB_ASSIGN_OR_RETURN(Bytes memory, device.Quantity<Bytes>("memory"));   // "16 GiB"
//   // "--cluster=a.json: device.memory: \"16\": the unit is missing; ..."
//
// An object points into the json that it was made from, which must outlive it.
#ifndef PIPELAB_TOOLS_BASE_JSON_OBJECT_H_
#define PIPELAB_TOOLS_BASE_JSON_OBJECT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {

class JsonObject {
 public:
  // `what` names the file or option. InvalidArgument where the value is not an object.
  static absl::StatusOr<JsonObject> Root(const nlohmann::json& value, absl::string_view what) {
    return Make(&value, std::string(what), "");
  }

  // Names the first key that is not in the list, and the list.
  absl::Status AllowKeys(std::initializer_list<absl::string_view> known) const;

  bool Has(absl::string_view key) const { return value_->contains(std::string(key)); }
  // There, and not null.
  bool HasValue(absl::string_view key) const {
    return Has(key) && !(*value_)[std::string(key)].is_null();
  }
  // Where a field may be written in two ways.
  bool HasString(absl::string_view key) const;
  bool HasObject(absl::string_view key) const;
  std::vector<std::string> Keys() const;

  // The field must be there and have the type; an empty string is refused.
  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<double> Number(absl::string_view key) const;
  // From least to most.
  absl::StatusOr<int64_t> Integer(absl::string_view key, int64_t least, int64_t most) const;
  absl::StatusOr<bool> Bool(absl::string_view key) const;
  absl::StatusOr<JsonObject> Object(absl::string_view key) const;
  absl::StatusOr<std::vector<JsonObject>> Objects(absl::string_view key) const;  // of a list
  // A list of anything.
  absl::StatusOr<const nlohmann::json*> List(absl::string_view key) const;

  // A string such as "25 GB/s".
  template <typename Q>
  absl::StatusOr<Q> Quantity(absl::string_view key) const {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, String(key));
    absl::StatusOr<Q> q = ParseQuantity<Q>(text);
    if (q.ok()) return q;
    return Error(key, q.status().message());
  }

  // "FILE: PLACE.KEY: REASON".
  template <typename... Parts>
  absl::Status Error(absl::string_view key, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", PlaceOf(key), ": ", parts...));
  }
  const std::string& what() const { return what_; }
  std::string PlaceOf(absl::string_view key) const;

 private:
  JsonObject(const nlohmann::json* value, std::string what, std::string place)
      : value_(value), what_(std::move(what)), place_(std::move(place)) {}
  static absl::StatusOr<JsonObject> Make(const nlohmann::json* value, std::string what,
                                         std::string place);
  absl::StatusOr<const nlohmann::json*> Find(absl::string_view key) const;

  const nlohmann::json* value_;
  std::string what_, place_;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_JSON_OBJECT_H_
