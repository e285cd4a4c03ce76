// A recipe as DeepSpeed's ds_config.json: batch, ZeRO, number types, pipeline.
//
//   PIPELAB_ASSIGN_OR_RETURN(DeepSpeedConfig d, DeepSpeedJson(recipe));
//   DumpJson(d.json);
//
// The model, and how its layers make stages, are DeepSpeed's Python code (PipelineModule): `notes`
// say what it must have. InvalidArgument naming what DeepSpeed has no words for: pipelines other
// than 1F1B with even stages, ZeRO-2 and 3 with one, tensor parallelism with one.
#ifndef PIPELAB_PIPELINES_RECIPES_DEEPSPEED_JSON_H_
#define PIPELAB_PIPELINES_RECIPES_DEEPSPEED_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "pipelines/recipes/recipe.h"

namespace pipelab {

struct DeepSpeedConfig {
  nlohmann::json json;
  std::vector<std::string> notes;
};

absl::StatusOr<DeepSpeedConfig> DeepSpeedJson(const Recipe& recipe);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_DEEPSPEED_JSON_H_
