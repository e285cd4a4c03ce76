// A graph with rows of numbers, labels and a split: what a graph network learns from.
//
//   PIPELAB_ASSIGN_OR_RETURN(CsrGraph graph, CsrGraph::FromEdges(5, {{0, 1}, {1, 4}}));
//   for (int32_t u : graph.neighbours(1)) ...              // 0, 4
//
// Graphs are undirected: each edge is in the lists of both ends, which are ascending and have
// neither loops nor repeats. Ids are 32 bits wide, so that a list is read in half the cache lines.
#ifndef PIPELAB_MODELS_DATA_GRAPH_STORE_H_
#define PIPELAB_MODELS_DATA_GRAPH_STORE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pipelab {

struct CsrGraph {
  std::vector<int64_t> offsets_V1 = {0};  // [vertices + 1]
  std::vector<int32_t> neighbours_E;

  // Both directions of each edge, sorted; loops and repeats are dropped. InvalidArgument names an
  // edge with an end that is no vertex.
  static absl::StatusOr<CsrGraph> FromEdges(int32_t vertices,
                                            const std::vector<std::pair<int32_t, int32_t>>& edges);

  int32_t num_vertices() const { return static_cast<int32_t>(offsets_V1.size()) - 1; }
  int64_t num_edges() const { return static_cast<int64_t>(neighbours_E.size()) / 2; }
  int64_t degree(int32_t v) const { return offsets_V1[v + 1] - offsets_V1[v]; }
  absl::Span<const int32_t> neighbours(int32_t v) const {
    return absl::MakeConstSpan(neighbours_E)
        .subspan(static_cast<size_t>(offsets_V1[v]), static_cast<size_t>(degree(v)));
  }
};

struct GraphData {
  std::string name;  // "theorems", "wordnet", "generated"
  CsrGraph graph;
  int width = 0;                  // numbers of a vertex
  std::vector<float> rows_VW;     // of a text: its words, hashed (text_graph.h)
  std::vector<int32_t> labels_V;  // [0, classes)
  int classes = 0;
  std::vector<int32_t> train, test;  // vertices, ascending: SplitVertices
};

// One vertex in five, by (seed, vertex), is held out.
void SplitVertices(uint64_t seed, GraphData* data);

// Edges between vertices of the same label, as a share of all.
double SameLabelShare(const GraphData& data);

// A graph whose degrees are `degrees_V` but for loops and repeats (few in sparse graphs): stubs are
// paired by a shuffle, of each label's own ones with probability `alike` (Newman, "The structure
// and function of complex networks", SIAM Review 2003). Rows are a centre of the label plus normal
// noise; labels are in turn.
struct GeneratedGraph {
  std::vector<int32_t> degrees_V;
  int classes = 10;
  double alike = 0.5;
  int width = 16;
  float noise = 1;
};
GraphData GenerateGraph(const GeneratedGraph& shape, uint64_t seed);

// Degrees of a power law: P(d) ~ d^-exponent in [least, most].
std::vector<int32_t> PowerLawDegrees(int32_t vertices, double exponent, int32_t least, int32_t most,
                                     uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_GRAPH_STORE_H_
