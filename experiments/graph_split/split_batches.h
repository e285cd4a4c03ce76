// What batches of a real graph ask of a group: by how vertices are divided, and beside
// data-parallel parts of the batch.
//
//   PIPELAB_ASSIGN_OR_RETURN(const BatchCounts counts, CountBatches(graph, size));
//   report.AddTable(MethodTable(counts));
#ifndef PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_BATCHES_H_
#define PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_BATCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/gsplit.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/graph_store.h"
#include "pipelines/graphs/graph_partition.h"

namespace pipelab {

struct BatchCountsSize {
  int members = 4;
  int64_t batch = 1024;
  std::vector<int> fanouts = {15, 10, 5};
  int batches = 12, epochs = 10;  // epochs of pre-samples
};

struct MethodCounts {
  PartitionMethod method = PartitionMethod::kRandom;
  double cut = 0;                // of the graph's edges
  double crossing = 0;           // of the batches' edges
  double edges = 0, inputs = 0;  // fullest member over the mean, mean of batches
};

struct BatchCounts {
  BatchCountsSize size;
  std::string graph;
  std::vector<MethodCounts> methods;
  double more_rows = 0, more_edges = 0;  // data-parallel over one batch
};

absl::StatusOr<BatchCounts> CountBatches(const GraphData& data, const BatchCountsSize& size);
Table MethodTable(const BatchCounts& counts, const GSplitPaper& paper);
std::vector<Claim> BatchClaims(const BatchCounts& counts);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_BATCHES_H_
