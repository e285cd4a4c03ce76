// Some neighbours of some vertices, hop by hop: what a graph network computes a batch from
// (Hamilton et al., "Inductive representation learning on large graphs", NeurIPS 2017).
//
//   NeighbourSampler sampler(&graph, /*fanouts=*/{15, 10, 5}, /*seed=*/1);
//   GraphSample sample = sampler.Sample(step, targets);
//   sample.blocks[0].sources;                      // the vertices whose rows are needed
//
// A draw depends on (seed, step, hop, vertex) alone, so a sample is the same whoever draws it, on
// however many threads or devices, and a vertex has the same neighbours in whatever batch of a step
// it comes. Fan-out h is that of the h-th hop from the targets. All vertices that are known so far
// draw at each hop.
//
// A sampler has tables of the graph's size and belongs to one thread.
#ifndef PIPELAB_MODELS_DATA_NEIGHBOUR_SAMPLER_H_
#define PIPELAB_MODELS_DATA_NEIGHBOUR_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/data/graph_store.h"

namespace pipelab {

// One hop: from sources to targets.
struct GraphBlock {
  int32_t num_targets = 0;       // the first sources are the targets themselves
  std::vector<int32_t> sources;  // vertices
  std::vector<int32_t> offsets;  // [num_targets + 1]
  std::vector<int32_t> edges;    // places in `sources`

  int32_t num_sources() const { return static_cast<int32_t>(sources.size()); }
  int32_t num_edges() const { return static_cast<int32_t>(edges.size()); }
};

struct GraphSample {
  std::vector<GraphBlock>
      blocks;  // the first one is computed first; the last one's targets are the
               // batch's
  int64_t num_edges() const;
};

// All neighbours, in their order, of a vertex that has no more.
inline constexpr int kAllNeighbours = 1 << 30;

// min(fanout, degree) neighbours without replacement, each set equally likely (but for 2^-32 of the
// degree). Floyd's method (Bentley and Floyd, CACM 1987).
void DrawNeighbours(const CsrGraph& graph, uint64_t seed, int64_t step, int hop, int32_t v,
                    int fanout, std::vector<int32_t>* chosen);

class NeighbourSampler {
 public:
  // `graph` must outlive the sampler. At least one fan-out, each at least 1 (CHECKed).
  NeighbourSampler(const CsrGraph* graph, std::vector<int> fanouts, uint64_t seed);

  // Targets are different vertices (CHECKed).
  GraphSample Sample(int64_t step, absl::Span<const int32_t> targets);

  const std::vector<int>& fanouts() const { return fanouts_; }

 private:
  void Hop(int64_t step, int hop, std::vector<int32_t>* known, GraphBlock* block);

  // The place of a vertex among those known, and of which sample: one cache line for both.
  struct Place {
    uint32_t stamp = 0;
    int32_t place = 0;
  };

  const CsrGraph* const graph_;
  const std::vector<int> fanouts_;
  const uint64_t seed_;
  std::vector<Place> places_;  // [vertex]
  uint32_t stamp_ = 0;
};

// [vertex] Probability that it is a source of the first block, where each vertex v is a target with
// probability targets[v], by itself. A vertex that is known draws at each hop:
//   p_h(v) = 1 - (1 - p_{h-1}(v)) prod over neighbours u of (1 - min(1, f_h / deg u) p_{h-1}(u))
// Kaler et al. ("SALIENT++", MLSys 2023) place rows by it. Exact for one hop; from the second on it
// takes neighbours as independent, which vertices that both were drawn by a third are not.
std::vector<double> InclusionProbabilities(const CsrGraph& graph, absl::Span<const double> targets,
                                           absl::Span<const int> fanouts);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_NEIGHBOUR_SAMPLER_H_
