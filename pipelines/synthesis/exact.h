// The shortest order of small problems, with a proof: depth first over PartialOrders.
//
//   ExactOptions options;
//   options.shorter_than = best_known;                // ns
//   ExactResult result = SearchExactly(problem, heads, options);
//   if (result.complete) ...                          // nothing shorter than result.makespan
//
// A way is closed where its lower bound reaches the best makespan, where a state that was closed
// before had done the same passes no later, or by the rule of Delay. The log of a complete search
// is what check_proof.h reads. What goes to the host is searched with the order.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_EXACT_H_
#define PIPELAB_PIPELINES_SYNTHESIS_EXACT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct ExactOptions {
  int64_t shorter_than = 0;      // ns: orders of this makespan are not looked for
  int64_t most_nodes = 2000000;  // and then it gives up
  std::function<bool()> stop;    // asked now and then; true: give up
};

struct ExactResult {
  bool complete = false;  // all ways are closed
  OrderWords words;       // the best, where one is shorter; else empty
  int64_t makespan = 0;   // of it, or shorter_than
  int64_t nodes = 0;
  // A letter a node in depth-first order (proof.h), where the search is complete.
  std::string log;
};

// Passes and copies that take no time are searched as if they took 1 ns: `complete` is then false.
ExactResult SearchExactly(const SynthesisProblem& problem, const Heads& heads,
                          const ExactOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_EXACT_H_
