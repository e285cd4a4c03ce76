// What passes of inference take on a machine, from the operations of a model's layers
// (models/graph/operation.h), and what caches and weights hold there.
//
//   PIPELAB_ASSIGN_OR_RETURN(ServingCosts costs, ServingCosts::Make(graph, partition, {machine}));
//   costs.Compute(/*stage=*/0, pass.runs);
//   PIPELAB_ASSIGN_OR_RETURN(PassPlan plan, PlanPasses(requests, serving, costs.Times()));
//   Simulate(program_of_plan, costs.Table(plan));     // the plan's own times, to the nanosecond
//   costs.CacheBytes(/*stage=*/0, serving);                   // to the byte
//
// A pass has R rows, one for each token of its runs. A layer's products, norms and the like take
// all rows at once, so that weights are read once for the pass: its operations are those of one
// slice of R tokens. Attention is by run, over the tokens before it, which are read from the cache:
// the sum of its flops and of its numbers. The head has the rows that predict alone.
//
// Times are layer_times.h's: the same operations, device and rounding. `int4_group`: products of
// blocks have weights of 4 bits and a scale of 2 bytes for so many of them (MARLIN, arXiv
// 2408.11743), and take the larger of bytes / bandwidth and flops / peak.
#ifndef PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_
#define PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/graph/token_run.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

struct ServingCostOptions {
  Machine machine;
  PathCost link;           // from a stage to the next, and from the last to the first
  int64_t int4_group = 0;  // 0: weights as the machine's numbers
};

// Ranges of layers of which the slowest is as fast as can be in a pass of these runs.
absl::StatusOr<ModelPartition> CutForPass(const ModelGraph& graph, int stages,
                                          const ServingCostOptions& options,
                                          const std::vector<TokenRun>& runs);

// Copies share what they remember of passes: one thread at a time.
class ServingCosts {
 public:
  // Keeps no reference. InvalidArgument for a layer without a cache (models/specs/token_cache.h) or
  // that takes whole samples only, stages that are no chain, and 4-bit weights of a model with
  // experts; NotFound naming what the machine lacks.
  static absl::StatusOr<ServingCosts> Make(const ModelGraph& graph, const ModelPartition& partition,
                                           const ServingCostOptions& options);

  int num_stages() const { return static_cast<int>(stages_.size()); }
  Nanoseconds Compute(int stage, const std::vector<TokenRun>& runs) const;
  // Rows x hidden to the next stage; from the last one 4 bytes a token.
  Bytes MessageBytes(int stage, const std::vector<TokenRun>& runs) const;
  // What they return needs no ServingCosts to live.
  ServingTimes Times() const;
  // The costs of a program of PassSchedule(plan).
  CostTable Table(const PassPlan& plan) const;

  // A stage's bytes: all slots' caches, 2 x heads of keys x their size for each token and
  // attention; and weights.
  Bytes CacheBytes(int stage, const ServingOptions& options) const;
  Bytes WeightBytes(int stage) const { return stages_[stage].weights; }

 private:
  class LayerCache;
  struct Stage {
    std::vector<int64_t> layers;  // [kind of layer] how many the stage has
    int64_t hidden = 0;           // of what it sends; 0: tokens
    Bytes cache_of_token, weights;
  };

  ServingCosts() = default;

  std::vector<Stage> stages_;
  PathCost link_;
  int64_t number_bytes_ = 4;
  std::shared_ptr<LayerCache> layers_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_PASS_COSTS_H_
