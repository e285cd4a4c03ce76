// Small changes to an order, one after the other, as long as it becomes no longer.
//
//   LocalSearchOptions options;
//   options.moves = 20000;
//   words = LocalSearch(problem, words, options);
//
// A move puts one symbol of a word elsewhere in it, or has a micro-batch go to the host that
// stayed, or stay that went. It is kept where the order still fits, and is as long or shorter; of
// equally long ones, where input gradients begin no later in sum. That leads on where many orders
// are equally long, as they are where devices wait for copies. Deterministic by seed.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_LOCAL_SEARCH_H_
#define PIPELAB_PIPELINES_SYNTHESIS_LOCAL_SEARCH_H_

#include <cstdint>
#include <functional>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct LocalSearchOptions {
  int64_t moves = 10000;  // that are tried
  uint64_t seed = 1;
  std::function<bool()> stop;  // asked now and then
};

// `words`: an order of the problem.
OrderWords LocalSearch(const SynthesisProblem& problem, OrderWords words,
                       const LocalSearchOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_LOCAL_SEARCH_H_
