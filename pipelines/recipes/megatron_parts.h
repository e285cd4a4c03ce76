// Parts of what ReadMegatronFlags reads, in its order. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_MEGATRON_PARTS_H_
#define PIPELAB_PIPELINES_RECIPES_MEGATRON_PARTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "pipelines/recipes/megatron_options.h"
#include "pipelines/recipes/recipe.h"

namespace pipelab {

inline constexpr int64_t kMostMegatronDegree = 1 << 20;
inline constexpr int64_t kMostMegatronBatch = 1 << 24;

// Sizes, attention and experts, without the number of words.
absl::Status TakeMegatronModel(const MegatronOptions& options, Recipe* recipe);
// Norms of heads, latent attention and windows, once the recipe's model has its heads.
absl::Status TakeMegatronAttention(const MegatronOptions& options, Recipe* recipe);
absl::Status TakeMegatronExperts(const MegatronOptions& options, Recipe* recipe);
// Behind the degree of tensor parallelism, which pads them.
absl::Status TakeMegatronVocabulary(const MegatronOptions& options, Recipe* recipe);
// Behind all other degrees: of expert parallelism.
absl::Status TakeMegatronExpertDegrees(const MegatronOptions& options, Recipe* recipe);
// Behind stages and recomputation: how experts' rows are exchanged, and what runs beside that.
absl::Status TakeMegatronExchanges(const MegatronOptions& options, Recipe* recipe);
// Behind the type of numbers: kernels that are fused, and those that CUDA graphs launch.
absl::Status TakeMegatronLaunches(const MegatronOptions& options, Recipe* recipe);
void AddMegatronLaunches(const LaunchedKernels& kernels, Settings* settings);
// Layers of stages, and their schedule.
absl::Status TakeMegatronStages(const MegatronOptions& options, Recipe* recipe);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_MEGATRON_PARTS_H_
