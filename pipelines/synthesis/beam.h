// Many orders at a time, made in the order of time; of equally long beginnings the most promising
// are kept (beam search; Lowerre 1976). Finds an order where there is one, and proves nothing.
//
//   BeamOptions options;
//   options.width = 64;
//   OrderWords words = BeamSearch(problem, heads, options);   // empty: all ways ended in a lock
#ifndef PIPELAB_PIPELINES_SYNTHESIS_BEAM_H_
#define PIPELAB_PIPELINES_SYNTHESIS_BEAM_H_

#include <cstdint>
#include <functional>

#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct BeamOptions {
  int width = 32;
  int64_t shorter_than = 0;  // ns; 0: no matter. Beginnings that cannot become shorter are dropped
  uint64_t seed = 1;         // of noise that breaks ties, and
  double noise = 0;          // shares of a pass that it may be worth
  int window = 16;           // PartialOrders::Options
  double lead = 1;           // the same
  const SentSet* sent = nullptr;  // the same
  // Begin as this order does, up to the time (ns): a large neighbourhood of it (Shaw 1998).
  const OrderWords* begin_as = nullptr;
  int64_t begin_until = 0;
  std::function<bool()> stop;
};

OrderWords BeamSearch(const SynthesisProblem& problem, const Heads& heads,
                      const BeamOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_BEAM_H_
