// The fields of a StepConfig by name, for its text and JSON forms and for filters.
//
//   for (const StepField& f : StepFields()) {
//     if (f.key == "sharding") f.get(config);   // "optimizer"
//   }
#ifndef PIPELAB_PIPELINES_STEP_STEP_FIELDS_H_
#define PIPELAB_PIPELINES_STEP_STEP_FIELDS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

enum class FieldKind : uint8_t { kInteger, kSwitch, kText };

// `get` writes the value as the text form has it, and `set` reads it: the status says what would be
// right. A switch is "on" or "".
struct StepField {
  absl::string_view key;       // "P"
  absl::string_view json_key;  // "pipeline"
  FieldKind kind = FieldKind::kText;
  bool always = false;  // ToString has it even where it is the default
  std::function<std::string(const StepConfig&)> get;
  std::function<absl::Status(absl::string_view, StepConfig*)> set;
};

// In the order of the text form, the scheme left out.
const std::vector<StepField>& StepFields();

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_FIELDS_H_
