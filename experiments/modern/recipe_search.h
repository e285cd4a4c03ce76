// Published recipes beside what a search chooses: is the layout of a run near the fastest that the
// search finds for its model, machine, GPUs, batch and precision, among what its system can vary?
//
//   const std::vector<RecipeChoice> choices = SearchForRecipes(all, models, machines);
//   report.AddTable(RecipeTable(choices));  report.AddTable(FasterTable(choices));
//   report.AddClaim(RecipeClaim(choices));
//
// Both are predicted, so no error of a prediction counts that both have. Stages are cut by time in
// both. What a system can vary:
//   Megatron-LM   1F1B and interleaved 1F1B, T within a node, P, C up to 8, V, micro-batch,
//                 recomputation of blocks, the optimizer's state replicated or divided
//   torchtitan    FSDP by blocks with T, or 1F1B and interleaved 1F1B with gradients divided
//   llm-foundry   FSDP by blocks, alone
//   nanotron      1F1B, T within a node, P, micro-batch, ZeRO 0 and 1
// nanotron's rows are a sweep of all layouts, so only the best one of each request is judged.
#ifndef PIPELAB_EXPERIMENTS_MODERN_RECIPE_SEARCH_H_
#define PIPELAB_EXPERIMENTS_MODERN_RECIPE_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_results.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/search/search.h"

namespace pipelab {

// A published layout.
struct PublishedRecipe {
  std::string id;  // of its row
  StepConfig config;
  double seconds = 0;
  bool fits = false;  // by the memory model; if not, it is not judged
};

// One request, and what was published for it.
struct RecipeChoice {
  std::string system, gpu, precision, model;
  int64_t gpus = 0, batch = 0, tokens = 0;
  std::vector<PublishedRecipe> recipes;
  StepConfig best;  // of the search
  double seconds = 0;
  // In what the first recipe loses most against it, and how many seconds.
  std::string component;
  double lost_seconds = 0;
};

// Whether the prediction is at most so much above the search's best.
constexpr double kNearBest = 0.1;
inline bool IsNear(const RecipeChoice& choice, const PublishedRecipe& recipe) {
  return recipe.seconds <= (1 + kNearBest) * choice.seconds;
}

// What the system of a row can vary, for the row's model, GPUs and batch.
SearchRequest RequestOf(const ModernRow& row, const ModernStep& step);

// The choices of the predicted rows, grouped by request. The results must be of these rows.
absl::StatusOr<std::vector<RecipeChoice>> SearchForRecipes(const std::vector<ModernResult>& all,
                                                           const std::vector<ModernModel>& models,
                                                           const ModernMachines& machines);

Table RecipeTable(const std::vector<RecipeChoice>& choices);  // by system and GPU
Table FasterTable(const std::vector<RecipeChoice>& choices);  // where the search finds a faster one
Claim RecipeClaim(const std::vector<RecipeChoice>& choices);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_RECIPE_SEARCH_H_
