// A graph as a text: an edge a line, two vertices' numbers with blanks, a tab or a comma between
// them, as SNAP's and DGL's files have them. Lines that begin with # or % are comments.
//
//   PIPELAB_ASSIGN_OR_RETURN(CsrGraph graph, ParseEdgeList(text, "--graph=roads.txt"));
//
// Vertices are 0 to the largest number that comes. Further columns (weights) are ignored.
// Errors: InvalidArgument, one line with file and line.
#ifndef PIPELAB_MODELS_DATA_EDGE_LIST_H_
#define PIPELAB_MODELS_DATA_EDGE_LIST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/graph_store.h"

namespace pipelab {

// A short text with a large number would else take all memory.
inline constexpr int32_t kMostListedVertices = 1 << 28;

// `what` names the file in errors. At least one edge. A number of a vertex may be at most 64 times
// the number of edges and 1024 more.
absl::StatusOr<CsrGraph> ParseEdgeList(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EDGE_LIST_H_
