// Random graphs of operators for tests of planners: what models look like, with costs at random.
//
//   PlanProblem p = RandomGraph(GraphShape::kForkJoin, /*operators=*/30, seed);
#ifndef PIPELAB_TESTS_SUPPORT_RANDOM_GRAPHS_H_
#define PIPELAB_TESTS_SUPPORT_RANDOM_GRAPHS_H_

#include <cstdint>
#include <vector>

#include "pipelines/planners/plan_problem.h"

namespace pipelab {

enum class GraphShape : uint8_t {
  kForkJoin,  // a source, two to five chains, a sink
  kNested,    // series and branches of one another
  kSkips,     // a chain with edges over 2 to 12 operators
  kLayered,   // layers of one to four, each fed by one or two of the layer before
  kIslands,   // chains that nothing joins
  kCells,     // blocks of 3 to 6 branches, and edges over a block
};
inline constexpr int kGraphShapes = 6;

// Edges from smaller to larger operators.
std::vector<PlanEdge> RandomEdges(GraphShape shape, int operators, uint64_t seed);

// On 2 to 8 devices, 64 micro-batches, memory ample or tight: a part of what a plan with one
// device a stage needs, so that some problems have no plan.
PlanProblem RandomGraph(GraphShape shape, int operators, uint64_t seed);

// Times 1 to 10, parameters 0 to 20, outputs 0 to 5, 8 devices, 64 micro-batches, ample memory.
PlanProblem WithRandomCosts(std::vector<PlanEdge> edges, int operators, uint64_t seed);

// So many chains of `length` operators that nothing joins.
std::vector<PlanEdge> ChainsSideBySide(int chains, int length);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_RANDOM_GRAPHS_H_
