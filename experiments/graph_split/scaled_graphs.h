// Graphs with the degrees of Orkut and of papers100M, scaled down: vertices, targets, batch and
// caches by the same factor, so that as large a share of a batch's draws meet as in the real graph.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ScaledGraph graph, MakeScaledGraph(OrkutShape(), /*scale=*/16));
//   graph.BatchOf(0);                        // 1024 / 16 targets
#ifndef PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SCALED_GRAPHS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SCALED_GRAPHS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/graph_store.h"
#include "pipelines/graphs/graph_partition.h"

namespace pipelab {

// The figures of the real graph. Degrees, the lengths of lists, are log-normal, exp(mu + sigma x
// normal), of mean `mean_degree`.
struct RealGraph {
  std::string name;  // "orkut"
  int64_t vertices = 0, targets = 0;
  double mean_degree = 0, sigma = 0;
  // Edges one way: how often a vertex is in others' lists is drawn apart, log-normal with this
  // sigma.
  bool directed = false;
  double listed_sigma = 0;
  int64_t width = 0, classes = 0;
  int64_t batch = 1024;
  std::vector<int> fanouts = {15, 15, 15};
  // Vertices are in so many groups, with so large a share of edges within them.
  int groups = 64;
  double alike = 0;
  int64_t cache_bytes = 0;  // of a device
  // What of this is printed where, and what is assumed: a thing and its source.
  std::vector<std::pair<std::string, std::string>> sources;

  int64_t steps() const { return (targets + batch - 1) / batch; }  // of an epoch
};
RealGraph OrkutShape();
RealGraph Papers100MShape();

struct ScaledGraph {
  RealGraph real;
  int scale = 1;
  CsrGraph graph;
  std::vector<int32_t> train;
  PreSamples samples;

  // The real batch over the scale, of different targets.
  std::vector<int32_t> BatchOf(int64_t step) const;
};

// InvalidArgument for a scale that does not divide the batch.
absl::StatusOr<ScaledGraph> MakeScaledGraph(const RealGraph& real, int scale, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SCALED_GRAPHS_H_
