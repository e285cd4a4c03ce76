// The shortest way from a recipe to the fastest configuration that its system runs: one value is
// changed after another, each time the one that gains most.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RecipePath path, PathToBest(input, &cache, memory));
//   for (const PathStep& step : path.steps) step.changes;     // "--micro-batch-size 2"
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_PATH_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_PATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/commands/recipe_input.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/units.h"

namespace pipelab {

struct PathStep {
  StepPrediction prediction;
  std::string changes;  // of the settings before it
};

struct RecipePath {
  std::vector<PathStep> steps;  // none: the system runs nothing faster
  bool whole = true;            // false: the search was ended before it had looked at everything
};

// A search looks at so many grids, schedules and configurations at most, with the same answer on
// any machine: half a minute of most.
constexpr int64_t kMostLooks = 2'000'000;

// By configurations that fit into `memory` of a device. A value whose change gains less than a
// thousandth stays as it is; values that make no configuration one without the other are changed
// together.
absl::StatusOr<RecipePath> PathToBest(const RecipeInput& input, StepCache* cache, Bytes memory);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_PATH_H_
