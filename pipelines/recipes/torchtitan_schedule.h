// torchtitan's schedule, and the layers of its stages. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_SCHEDULE_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_SCHEDULE_H_

#include "absl/status/status.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/recipes/torchtitan_keys.h"

namespace pipelab {

// Takes the schedule; the recipe must have its model and degrees.
absl::Status TakeTorchtitanSchedule(const TorchtitanKeys& keys, Recipe* recipe);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_TORCHTITAN_SCHEDULE_H_
