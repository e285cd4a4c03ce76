// KeptUnits says what the units of a model (stage_cut.h) keep of a micro-batch until its backward,
// at least, however the model is cut: a search knows it before it has stages. Private to search.
//
//   KeptUnits units(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<double>* kept, units.Of(config));  // [unit] bytes
#ifndef PIPELAB_PIPELINES_SEARCH_KEPT_UNITS_H_
#define PIPELAB_PIPELINES_SEARCH_KEPT_UNITS_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "pipelines/step/layer_time_memo.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

class KeptUnits {
 public:
  // The cache must outlive it.
  explicit KeptUnits(StepCache* cache) : cache_(*cache) {}

  // On one rank, with nothing rebuilt. Holds as long as this.
  absl::StatusOr<const std::vector<double>*> Of(const StepConfig& config);
  // Whether each unit takes the output of the one before it, with a gradient.
  bool AreChain(CutRule rule);

 private:
  double KeptBy(const StepModel& model, int layer, const StepConfig& config);

  StepCache& cache_;
  // Bytes by the model, the first layer that is alike, and what that layer notices of sizes.
  absl::flat_hash_map<std::tuple<const GroupedModel*, int, LayerSizes>, double> of_layer_;
  // By sizes, without what is a matter of time alone; whether a unit is a layer; selective
  // recomputation's modules.
  absl::node_hash_map<std::tuple<LayerSizes, bool, bool, std::string>, std::vector<double>> kept_;
  std::map<CutRule, bool> chains_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_KEPT_UNITS_H_
