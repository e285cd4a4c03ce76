// What passes of a plan cost, from the one cost model: the layers' operations of each run, merged
// into one pass, on a machine.
//
//   PIPELAB_ASSIGN_OR_RETURN(PassCosts costs, PassCosts::Make(graph, partition, options));
//   PIPELAB_ASSIGN_OR_RETURN(PassPlan plan, PlanPasses(requests, serving, costs.Times()));
//   Simulate(program_of_plan, costs.Table(plan));          // the plan's own times, to the nanosecond
//
// Products of a pass have the rows of all runs and read weights once; attention reads the cache of
// each run. Heads give logits for runs that predict. With `int4_group` the weights of products are
// packed, but the head's (Int4MatmulOperation, models/graph/operation.h). Experts' weights are
// counted for each run, as if no two runs shared an expert.
#ifndef PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_
#define PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

struct PassCostOptions {
  Machine machine;
  PathCost link;           // between the devices of two stages, and from the last to the first
  int64_t int4_group = 0;  // rows of a scale; 0: weights of the machine's type
};

// Ranges of layers of which the slowest is as fast as can be in a pass of these runs.
absl::StatusOr<ModelPartition> CutForPass(const ModelGraph& graph, int stages,
                                          const PassCostOptions& options,
                                          const std::vector<TokenRun>& runs);

class PassCosts {
 public:
  // Keeps no reference. InvalidArgument naming a layer that has no cache (token_cache.h); NotFound
  // where the machine lacks something.
  static absl::StatusOr<PassCosts> Make(const ModelGraph& graph, const ModelPartition& partition,
                                        const PassCostOptions& options);

  Nanoseconds Compute(int stage, const std::vector<TokenRun>& runs) const;
  // Of the link, without its latency.
  Nanoseconds Transfer(int stage, const std::vector<TokenRun>& runs) const;
  ServingTimes Times() const;  // of this, which must outlive them
  // Of a program of PassSchedule(plan).
  CostTable Table(const PassPlan& plan) const;

  // Of a stage: all slots' caches, and weights.
  Bytes CacheBytes(int stage, const ServingOptions& options) const;
  Bytes WeightBytes(int stage) const;

 private:
  struct Kind {  // layers alike
    LayerSpec layer;
    int64_t count = 0;
  };
  struct Stage {
    std::vector<Kind> kinds;
    int64_t cache_numbers = 0;  // of a token
    Bytes weights;
  };

  PassCosts() = default;
  Bytes MessageBytes(int stage, const std::vector<TokenRun>& runs) const;

  PassCostOptions options_;
  std::vector<Stage> stages_;
  int64_t hidden_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_
