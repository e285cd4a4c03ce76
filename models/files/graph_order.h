// The order of the nodes of a graph that somebody wrote down, or the cycle that it has.
//
//   GraphOrder o = OrderNodes({{2}, {}, {1}});   // o.nodes is {1, 2, 0}
//   if (!o.cycle.empty()) ...                    // {0, 2}: 0 -> 2 -> 0
#ifndef PIPELAB_MODELS_FILES_GRAPH_ORDER_H_
#define PIPELAB_MODELS_FILES_GRAPH_ORDER_H_

#include <functional>
#include <string>
#include <vector>

namespace pipelab {

struct GraphOrder {
  // Each after its inputs, and otherwise as they were numbered; not all of them with a cycle.
  std::vector<int> nodes;
  std::vector<int> cycle;  // along the edges from its first node; empty: there is none
};

// inputs[node]: the nodes whose outputs it takes.
GraphOrder OrderNodes(const std::vector<std::vector<int>>& inputs);

// "a -> b -> a"; long cycles with their middle left out.
std::string CycleText(const std::vector<int>& cycle, const std::function<std::string(int)>& name);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_GRAPH_ORDER_H_
