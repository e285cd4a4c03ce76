// The series-parallel tree of a DAG's order: which operators are apart (neither needs the other),
// and which come after one another.
//
//   SeriesParallel tree = SeriesParallelOf(needs);   // needs[v]: nodes that v takes outputs of
//   tree.root.kind;                                  // kSeries: all of one child before the next
//   tree.added_orders;                               // 0: the graph is series-parallel
//
// Children of a series: everything in one is before everything in the next. Of a parallel node:
// nothing in one is before or after anything in another. A part that is neither (the smallest is
// a -> c, a -> d, b -> d) becomes a series by adding orders: it is cut at the level where fewest
// pairs of nodes that are apart get an order, and the two sides go on. A partition into stages that
// keeps the tree's order keeps the graph's; plans that need two ordered nodes apart are lost.
// (Valdes, Tarjan, Lawler, 1982: orders without the N above are exactly the series-parallel ones.)
#ifndef PIPELAB_PIPELINES_PLANNERS_SERIES_PARALLEL_H_
#define PIPELAB_PIPELINES_PLANNERS_SERIES_PARALLEL_H_

#include <cstdint>
#include <vector>

namespace pipelab {

struct SeriesParallelNode {
  enum class Kind : uint8_t { kNode, kSeries, kParallel };
  Kind kind = Kind::kNode;
  int node = -1;                             // kNode
  std::vector<SeriesParallelNode> children;  // at least two; no series in a series, and so on
};

struct SeriesParallel {
  SeriesParallelNode root;
  int64_t added_orders = 0;  // pairs
};

// The graph has at least one node and no cycle.
SeriesParallel SeriesParallelOf(const std::vector<std::vector<int>>& needs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_SERIES_PARALLEL_H_
