// One way for each of several operators, the fastest that fits in memory: a knapsack with choices.
//
//   std::vector<std::vector<MemoryMode>> modes = {{{1.0, 8}, {1.5, 2}}, {{2.0, 4}}};
//   MemoryChoice c = FastestFit(modes, /*room=*/10, /*most=*/5.0);     // c.time 3.5
//
// Exact: a dynamic program over the pairs of time and memory that no other pair beats in both, cut
// by what is needed and allowed at least (Nemhauser and Ullmann 1969).
#ifndef PIPELAB_PIPELINES_PLANNERS_MEMORY_MODES_H_
#define PIPELAB_PIPELINES_PLANNERS_MEMORY_MODES_H_

#include <limits>
#include <vector>

namespace pipelab {

struct MemoryMode {
  double time = 0, bytes = 0;
};

struct MemoryChoice {
  double time = std::numeric_limits<double>::infinity();  // infinite: nothing fits
  std::vector<int> modes;                                 // [operator]
  bool exact = true;  // false: too many pairs to keep all; a better choice may exist
};

// The choice of the least time, at most `most`, whose bytes are at most `room`.
MemoryChoice FastestFit(const std::vector<std::vector<MemoryMode>>& operators, double room,
                        double most);

// Operators that save the same bytes for the same time.
struct ClassOfModes {
  double bytes = 0, time = 0;
  int count = 0;
};

// The least time, at most `enough`, which saves what is missing (it is known that `enough` does).
// Classes that cost least for a byte come first. Exact, or says that it gave up: by branch and
// bound, with a part of an operator in the bound.
double LeastTimeOfClasses(const std::vector<ClassOfModes>& classes, double missing, double enough,
                          bool* exact);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_MEMORY_MODES_H_
