// The configurations that a released system runs: those that export writes in its options, and that
// have the same price when they are read back.
//
//   PIPELAB_ASSIGN_OR_RETURN(const SystemSearch systems, SystemSearch::OfFlags());
//   if (systems.asked()) PIPELAB_ASSIGN_OR_RETURN(result, systems.Run(&cache, request));
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_SYSTEM_SEARCH_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_SYSTEM_SEARCH_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/commands/recipe_input.h"
#include "models/zoo/gpt.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_cache.h"

namespace pipelab {

// The best that one system runs, with the recipe's other options. `request` has the sizes, limits
// and fixed keys. Errors are Search's.
absl::StatusOr<SearchResult> SearchSystem(const RecipeSystem& system, const Recipe& recipe,
                                          StepCache* cache, const SearchRequest& request);

// Those that --systems names.
class SystemSearch {
 public:
  // Reads --systems, and where it is empty, --schemes and --model. Where there are systems and no
  // --kernels are given, a model has Megatron-LM's from now on, as recipes are priced.
  // InvalidArgument for names that are none.
  static absl::StatusOr<SystemSearch> OfFlags();

  bool asked() const { return !systems_.empty(); }
  bool by_default() const { return by_default_; }  // nobody has named them
  bool any() const { return any_; }                // besides, what no system runs

  // Bytes of a parameter that the first system keeps.
  absl::StatusOr<StateNumbers> State(const StepModel& model) const;

  // The best of all systems, which are its methods; state and overlaps are each system's defaults.
  // `request` has the sizes, limits and fixed keys. Errors are Search's, and InvalidArgument for
  // models that are no language model.
  absl::StatusOr<SearchResult> Run(StepCache* cache, const SearchRequest& request) const;

 private:
  std::vector<const RecipeSystem*> systems_;
  bool by_default_ = false, any_ = false;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_SYSTEM_SEARCH_H_
