// How many stage activations the devices of a schedule hold when they hold the most, by the closed
// form of its scheme. Private to search.
//
//   HeldActivations held(&cache);
//   for (int64_t activations : held.Of(config)) { ... }
#ifndef PIPELAB_PIPELINES_SEARCH_HELD_ACTIVATIONS_H_
#define PIPELAB_PIPELINES_SEARCH_HELD_ACTIVATIONS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

class HeldActivations {
 public:
  explicit HeldActivations(StepCache* cache) : cache_(*cache) {}  // must outlive it

  // [pipeline device] At some time; none where that is not known.
  const std::vector<int64_t>& Of(const StepConfig& config);

 private:
  std::vector<int64_t> ByForm(const StepConfig& config) const;

  StepCache& cache_;
  // By scheme, P, V, M, group, replicas, concatenation.
  absl::node_hash_map<std::tuple<std::string, int, int, int, int, int, Concatenation>,
                      std::vector<int64_t>>
      known_;
};

// The bytes of so many activations, if they are those that keep least: `kept` has the bytes of one
// of each of the device's stages, which holds at most `most` of a stage.
double LeastBytes(int64_t activations, std::vector<double> kept, double most);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_HELD_ACTIVATIONS_H_
