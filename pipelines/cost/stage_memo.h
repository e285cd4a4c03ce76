// Costs of stages that were computed before: the stages of a transformer are mostly alike, in one
// partition and among those that a search looks at.
//
//   StageCostMemo memo(graph);
//   for (const ModelPartition& p : partitions) {
//     PIPELAB_ASSIGN_OR_RETURN(
//         CostTable t, ComputeStageCosts(graph, p, /*micro_batch_size=*/1, options, &memo));
//   }
//
// A memo holds for one graph, one size of micro-batches and one set of options.
#ifndef PIPELAB_PIPELINES_COST_STAGE_MEMO_H_
#define PIPELAB_PIPELINES_COST_STAGE_MEMO_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"

namespace pipelab {

class StageCostMemo {
 public:
  // All that a stage's cost depends on.
  using Key = std::vector<int>;

  // `alike`: FirstAlike of the graph.
  StageCostMemo(const ModelGraph& graph, std::vector<int> alike);

  // The layers of the stage, by which they are alike; where their inputs come from and which
  // outputs leave; what its backward rebuilds; and the parameters that other stages have, too.
  Key KeyOf(const ModelGraph& graph, const ModelPartition& partition, int stage) const;

  // Null: not yet known.
  const StageCost* Find(const Key& key) const;
  void Add(const Key& key, const StageCost& cost) { costs_.emplace(key, cost); }

 private:
  std::vector<int> alike_;
  std::vector<std::pair<int, int>> tied_;  // (layer, number of the tie), ascending
  absl::flat_hash_map<Key, StageCost> costs_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_MEMO_H_
