// For each of some operators one of its ways to run, so that all fit in memory in the least time.
//
//   std::vector<int> chosen = ChooseWays({{{3, 8}, {4, 1}}, {{2, 5}}}, 9);   // {1, 0}
//
// Exact, by the undominated pairs of time and bytes. Operators with the same ways are one group, of
// which only the number that goes each way matters, so that a hundred equal layers are quick. Of
// more than 2^14 undominated pairs some are left out, and the answer may not be the best.
#ifndef PIPELAB_PIPELINES_PLANNERS_CHOOSE_WAYS_H_
#define PIPELAB_PIPELINES_PLANNERS_CHOOSE_WAYS_H_

#include <vector>

namespace pipelab {

struct Way {
  double time = 0, bytes = 0;
};

// [operator] place in its ways; empty where they do not fit, whatever is chosen. Each has a way.
std::vector<int> ChooseWays(const std::vector<std::vector<Way>>& ways, double most_bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_CHOOSE_WAYS_H_
