// A configuration of a training step as JSON: {"scheme": "1f1b", "pipeline": 4, ...}.
//
//   nlohmann::json value = StepConfigToJson(config);         // every field
//   PIPELAB_ASSIGN_OR_RETURN(StepConfig again, StepConfigFromJson(value, "config.json"));
//
// Fields that are left out have their defaults. InvalidArgument naming `what`, the field and what
// would be right.
#ifndef PIPELAB_PIPELINES_STEP_STEP_CONFIG_JSON_H_
#define PIPELAB_PIPELINES_STEP_STEP_CONFIG_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/step/step_config.h"

namespace pipelab {

nlohmann::json StepConfigToJson(const StepConfig& config);
absl::StatusOr<StepConfig> StepConfigFromJson(const nlohmann::json& value, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_CONFIG_JSON_H_
