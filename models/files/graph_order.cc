#include "models/files/graph_order.h"

#include <algorithm>
#include <queue>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

// A cycle of nodes that wait for inputs for ever: back along such inputs until a node comes again.
std::vector<int> CycleAmong(const std::vector<std::vector<int>>& inputs,
                            const std::vector<int>& missing) {
  const auto waits = [&](int node) { return missing[node] > 0; };
  int node = 0;
  while (!waits(node)) ++node;
  std::vector<int> way, place(inputs.size(), -1);
  while (place[node] < 0) {
    place[node] = static_cast<int>(way.size());
    way.push_back(node);
    node = *std::find_if(inputs[node].begin(), inputs[node].end(), waits);
  }
  std::vector<int> cycle(way.begin() + place[node], way.end());
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace

GraphOrder OrderNodes(const std::vector<std::vector<int>>& inputs) {
  const int n = static_cast<int>(inputs.size());
  std::vector<std::vector<int>> consumers(n);
  std::vector<int> missing(n);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int node = 0; node < n; ++node) {
    missing[node] = static_cast<int>(inputs[node].size());
    if (missing[node] == 0) ready.push(node);
    for (int input : inputs[node]) consumers[input].push_back(node);
  }
  GraphOrder order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.nodes.push_back(node);
    for (int consumer : consumers[node]) {
      if (--missing[consumer] == 0) ready.push(consumer);
    }
  }
  if (static_cast<int>(order.nodes.size()) < n) order.cycle = CycleAmong(inputs, missing);
  return order;
}

std::string CycleText(const std::vector<int>& cycle, const std::function<std::string(int)>& name) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > kShown && i == kShown - 1) {
      absl::StrAppend(&text, "... -> ");
      i = cycle.size() - 1;
    }
    absl::StrAppend(&text, name(cycle[i]), " -> ");
  }
  return absl::StrCat(text, name(cycle[0]));
}

}  // namespace pipelab
