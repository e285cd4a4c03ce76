// Small problems for tests of planners: every connected DAG, and machines that are tight.
//
//   for (const SmallGraph& graph : SmallGraphs(/*nodes=*/5)) {
//     PlanProblem p = SmallProblem(graph, PlanObjective::kStageTime, seed);
//   }
#ifndef PIPELAB_TESTS_SUPPORT_PLAN_TESTING_H_
#define PIPELAB_TESTS_SUPPORT_PLAN_TESTING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "pipelines/planners/plan_problem.h"
#include "tools/base/rng.h"

namespace pipelab {

// Numbers one after the other, the same for the same seed and stream.
class Draw {
 public:
  Draw(uint64_t seed, absl::string_view stream) : rng_(seed, stream) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(rng_.Below(next_++, n)); }
  double Number(int64_t n) { return static_cast<double>(Below(n)); }

 private:
  CounterRng rng_;
  uint64_t next_ = 0;
};

struct SmallGraph {
  int nodes = 0;
  std::vector<std::pair<int, int>> edges;  // from a smaller to a larger node
};

// All connected ones; every connected DAG is among them up to its nodes' names. At most `most` of
// them, drawn with the seed.
std::vector<SmallGraph> SmallGraphs(int nodes, int most, uint64_t seed);

struct SmallOptions {
  bool tensor = false;     // degree 2, too, for some operators
  bool recompute = false;  // two ways to run most operators
  bool irregular = false;  // ways that differ in parameters and sync bytes; up to three
  bool backward = false;   // kMaxLoad: operators have a backward of the same colour
  bool idle = false;       // kMaxLoad: some operators take no time
  bool memory = true;      // a limit that excludes some plans, sometimes all
};

// Finished. Numbers are small whole ones or with digits, so that ties and near ties come up.
PlanProblem SmallProblem(const SmallGraph& graph, PlanObjective objective,
                         const SmallOptions& options, uint64_t seed);

// So many lines of `length` operators, between operator 0 and the last one if `joined`.
SmallGraph EqualLines(int branches, int length, bool joined);
// The other lines' figures become those of the first.
void MakeLinesEqual(int branches, int length, bool joined, PlanProblem* problem);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_PLAN_TESTING_H_
