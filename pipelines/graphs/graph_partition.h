// Vertices of a graph, divided over the members of a group: by chance, by METIS (Karypis and Kumar,
// "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
// Comput. 1998), or by METIS with what a sampler uses as weights (GSplit, arXiv 2303.13775).
//
//   PIPELAB_ASSIGN_OR_RETURN(const GraphWeights weights, PreSampleWeights(graph, sampling));
//   PIPELAB_ASSIGN_OR_RETURN(const VertexOwners owners, PartitionGraph(graph, weights, 4, 1));
//   QualityOf(graph, owners, 4).cut;               // share of edges between parts
//
// The objective is the weight of cut edges, each part with at most 1.03 times its share of the
// vertices' weight (METIS's default), which METIS may miss where single vertices are heavy. The
// same inputs and seed give the same parts.
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_PARTITION_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/graph_store.h"
#include "models/data/split_sampler.h"

namespace pipelab {

// The weights of vertices and of edges in the order of `neighbours_E`, at least 0. An edge weighs
// what it does in both lists, so a graph may be a directed one; without any weight it is left out.
// Empty: 1 each.
struct GraphWeights {
  std::vector<int64_t> vertices_V, edges_E;
};

// InvalidArgument for parts outside 1 to 256 and for a graph beyond METIS's 32-bit numbers.
// Weights of vertices are divided until their sum fits; those of edges are at most 2^20.
absl::StatusOr<VertexOwners> PartitionGraph(const CsrGraph& graph, const GraphWeights& weights,
                                            int parts, uint64_t seed);

// What is sampled before training: batches of `train` in an order of its own.
struct PreSampling {
  std::vector<int32_t> train;
  std::vector<int> fanouts;
  int64_t batch = 1024;
  int epochs = 10;
  uint64_t seed = 1;
};

// How often each vertex draws, and each edge is drawn, over the epochs.
struct PreSamples {
  std::vector<int64_t> draws_V, edges_E;  // an edge of v's list: by v
  std::vector<int64_t> inputs_V;          // as a source of the first block
};
absl::StatusOr<PreSamples> SampleBefore(const CsrGraph& graph, const PreSampling& sampling);
// Edges by their draws; vertices by draws x mean degree + 1.
GraphWeights WeightsOf(const CsrGraph& graph, const PreSamples& samples);

enum class PartitionMethod : uint8_t {
  kRandom,      // each vertex by chance
  kVertices,    // METIS, as many vertices in each part
  kEdges,       // METIS, as many edges
  kPreSamples,  // METIS, by PreSamples
};
inline constexpr PartitionMethod kPartitionMethods[] = {
    PartitionMethod::kRandom, PartitionMethod::kVertices, PartitionMethod::kEdges,
    PartitionMethod::kPreSamples};
const char* PartitionMethodName(PartitionMethod method);  // "pre_samples"
// InvalidArgument lists the names that there are.
absl::StatusOr<PartitionMethod> FindPartitionMethod(absl::string_view name);

// `samples` for kPreSamples alone.
absl::StatusOr<VertexOwners> MakePartition(PartitionMethod method, const CsrGraph& graph,
                                           const PreSamples& samples, int parts, uint64_t seed);

struct PartitionQuality {
  double cut = 0;                  // of all edges
  double vertices = 0, edges = 0;  // the largest part's over the mean
  std::vector<int64_t> vertices_P, edge_ends_P;
};
PartitionQuality QualityOf(const CsrGraph& graph, const VertexOwners& owners, int parts);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_PARTITION_H_
