#include "pipelines/step/step_config_json.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pipelines/step/step_fields.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

const StepField* FieldOfKey(absl::string_view key) {
  for (const StepField& f : StepFields()) {
    if (f.json_key == key) return &f;
  }
  return nullptr;
}

// As the text form has it; what the type should be where it is another.
absl::StatusOr<std::string> TextOf(const StepField& field, const nlohmann::json& value) {
  switch (field.kind) {
    case FieldKind::kInteger:
      if (value.is_number_integer()) return value.dump();
      return absl::InvalidArgumentError("must be a whole number");
    case FieldKind::kSwitch:
      if (value.is_boolean()) return std::string(value.get<bool>() ? "on" : "");
      return absl::InvalidArgumentError("must be true or false");
    case FieldKind::kText:
      if (value.is_string()) return value.get<std::string>();
      return absl::InvalidArgumentError("must be a string");
  }
  return absl::InternalError("no such kind of field");
}

}  // namespace

nlohmann::json StepConfigToJson(const StepConfig& config) {
  nlohmann::json object = {{"scheme", config.scheme}};
  for (const StepField& f : StepFields()) {
    const std::string text = f.get(config), key(f.json_key);
    if (f.kind == FieldKind::kSwitch) {
      object[key] = !text.empty();
    } else if (f.kind == FieldKind::kInteger) {
      int64_t number = 0;
      if (absl::SimpleAtoi(text, &number)) object[key] = number;
    } else if (!text.empty()) {
      object[key] = text;
    }
  }
  return object;
}

absl::StatusOr<StepConfig> StepConfigFromJson(const nlohmann::json& value, absl::string_view what) {
  const auto invalid = [&](const std::string& key, absl::string_view right) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", key, ": ", right));
  };
  if (!value.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": must be an object"));
  }
  StepConfig config;
  for (const auto& [key, field_value] : value.items()) {
    if (key == "scheme") {
      if (!field_value.is_string()) return invalid(key, "must be a string");
      config.scheme = field_value.get<std::string>();
      continue;
    }
    const StepField* const field = FieldOfKey(key);
    if (field == nullptr) return invalid(key, "is unknown");
    const absl::StatusOr<std::string> text = TextOf(*field, field_value);
    if (!text.ok()) return invalid(key, text.status().message());
    const absl::Status set = field->set(*text, &config);
    if (!set.ok()) return invalid(key, set.message());
  }
  return config;
}

}  // namespace pipelab
