#include "pipelines/cluster/shared_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/default_files.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

// Texts that are no quantities.
constexpr std::array<const char*, 9> kNamesAndNotes = {
    "name", "title", "class", "sharing", "rates", "kernels", "calibrated", "published", "defaults"};
// Each is in objects that are a value with its source.
constexpr std::array<const char*, 6> kOfValues = {"value", "points", "worst",
                                                  "m",     "tokens", "shapes"};

// Sources that hold for many values are copied to each. All machines of the catalogue need less
// than a hundredth of this.
constexpr int64_t kMostCopied = int64_t{4} << 20;  // bytes

// `left`: what may still be copied; below 0 when it was not enough.
void InheritSources(std::string source, json* object, int64_t* left) {
  const auto own = object->find("source");
  if (own != object->end() && own->is_string() && !own->get_ref<std::string&>().empty()) {
    source = own->get<std::string>();
    object->erase("source");
  }
  const auto copied = static_cast<int64_t>(source.size());
  for (const auto& [key, field] : object->items()) {
    if (*left < 0) return;
    const auto is_key = [&key = key](const char* k) { return key == k; };
    if (field.is_string() && !source.empty() &&
        std::none_of(kNamesAndNotes.begin(), kNamesAndNotes.end(), is_key)) {
      *left -= copied;
      field = {{"value", field}, {"source", source}};
    } else if (field.is_object()) {
      const bool value = std::any_of(kOfValues.begin(), kOfValues.end(),
                                     [&field = field](const char* k) { return field.contains(k); });
      if (!value) InheritSources(source, &field, left);
      if (value && !source.empty() && !field.contains("source")) {
        *left -= copied;
        field["source"] = source;
      }
    } else if (field.is_array()) {
      for (json& element : field) {
        if (*left < 0) return;
        *left -= copied;  // of the call
        if (element.is_object()) InheritSources(source, &element, left);
      }
    }
  }
}

absl::StatusOr<json> FindDefaults(const std::string& what, const std::string& name) {
  std::vector<absl::string_view> names;
  for (const EmbeddedText& file : DefaultFiles()) {
    names.push_back(file.name);
    if (file.name != name) continue;
    PIPELAB_ASSIGN_OR_RETURN(json defaults, ParseJson(file.text, name));
    int64_t left = kMostCopied;
    InheritSources("", &defaults, &left);
    return defaults;
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": device.defaults: \"", name,
                                                 "\" is unknown", NearestOrAll(name, names)));
}

}  // namespace

absl::Status ExpandSharedFields(absl::string_view what, json* file) {
  if (!file->is_object()) return absl::OkStatus();
  int64_t left = kMostCopied;
  InheritSources("", file, &left);
  if (left < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": source: those that hold for many values take more than ", kMostCopied,
                     " bytes with these; nearest: a shorter source, or fewer values under it"));
  }
  const auto device = file->find("device");
  if (device == file->end() || !device->is_object()) return absl::OkStatus();
  for (auto name = device->find("defaults"); name != device->end() && name->is_string();
       name = device->find("defaults")) {
    PIPELAB_ASSIGN_OR_RETURN(const json defaults,
                             FindDefaults(std::string(what), name->get<std::string>()));
    device->erase("defaults");
    for (const auto& [key, field] : defaults.items()) device->emplace(key, field);
  }
  return absl::OkStatus();
}

}  // namespace pipelab
