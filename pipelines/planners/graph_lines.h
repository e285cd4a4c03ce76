// Random orders of a graph's nodes that its edges allow, with those of a part together.
//
//   GraphLines lines(followers);                      // [node] -> nodes behind it
//   lines.Next(part_of, num_parts, LineKind::kDepthFirst);
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_LINES_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_LINES_H_

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace pipelab {

// How the nodes in a part are ordered: one path after the other, as listed or in random order, or
// any next.
enum class LineKind : uint8_t { kListed, kDepthFirst, kAny };

class GraphLines {
 public:
  explicit GraphLines(std::vector<std::vector<int>> followers) : followers_(std::move(followers)) {}

  // Parts are in a random order that their edges allow; they have no cycle.
  std::vector<int> Next(const std::vector<int>& part_of, int num_parts, LineKind kind);
  std::vector<int> Next(LineKind kind) {
    return Next(std::vector<int>(followers_.size()), 1, kind);
  }
  int Draw(size_t below) { return static_cast<int>(random_() % below); }

 private:
  int Take(std::vector<int>* from, bool any);

  const std::vector<std::vector<int>> followers_;
  std::mt19937_64 random_;  // of one seed: every run has the same orders
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_LINES_H_
