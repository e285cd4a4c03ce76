#include "pipelines/planners/graph_lines.h"

#include <algorithm>
#include <functional>

namespace pipelab {

// The last that became ready, or any.
int GraphLines::Take(std::vector<int>* from, bool any) {
  if (any) std::swap((*from)[Draw(from->size())], from->back());
  const int taken = from->back();
  from->pop_back();
  return taken;
}

std::vector<int> GraphLines::Next(const std::vector<int>& part_of, int num_parts, LineKind kind) {
  const auto size = static_cast<int>(followers_.size());
  std::vector<int> missing(size), missing_parts(num_parts), ready_parts, order;
  std::vector<std::vector<int>> ready(num_parts);
  for (int v = 0; v < size; ++v) {
    for (int w : followers_[v]) {
      ++(part_of[v] == part_of[w] ? missing[w] : missing_parts[part_of[w]]);
    }
  }
  for (int v = size - 1; v >= 0; --v) {
    if (missing[v] == 0) ready[part_of[v]].push_back(v);
  }
  for (int part = 0; part < num_parts; ++part) {
    if (missing_parts[part] == 0 && !ready[part].empty()) ready_parts.push_back(part);
  }
  // The first listed of those that became ready together comes next, or any of them.
  const auto arrange = [&](std::vector<int>* nodes, size_t begin) {
    const auto from = nodes->begin() + static_cast<int64_t>(begin);
    if (kind == LineKind::kDepthFirst) std::shuffle(from, nodes->end(), random_);
    if (kind == LineKind::kListed) std::sort(from, nodes->end(), std::greater<int>());
  };
  while (!ready_parts.empty()) {
    const int part = Take(&ready_parts, true);
    std::vector<int>& inside = ready[part];
    arrange(&inside, 0);
    while (!inside.empty()) {
      const int v = Take(&inside, kind == LineKind::kAny);
      order.push_back(v);
      const size_t begin = inside.size();
      for (int w : followers_[v]) {
        if (part_of[w] == part) {
          if (--missing[w] == 0) inside.push_back(w);
        } else if (--missing_parts[part_of[w]] == 0) {
          ready_parts.push_back(part_of[w]);
        }
      }
      arrange(&inside, begin);
    }
  }
  return order;
}

}  // namespace pipelab
