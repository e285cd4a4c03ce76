// A cost table in which nothing costs what another thing does: each stage, token slice or pass, and
// kind of pass, each field of its memory, each edge and each link has a prime number of its own. So
// a price or a life that is taken from another one shows.
//
//   const CostTable costs = PrimeCosts(program, PricesOf::kSharedLinks);
//   Simulate(program, costs);
//
// Bytes and nanoseconds mean nothing here. It serves any lowered program.
#ifndef PIPELAB_TESTS_PRIME_COSTS_H_
#define PIPELAB_TESTS_PRIME_COSTS_H_

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// What runs beside what, and over what. Each also has something that the others do not.
enum class PricesOf {
  kPlain,     // messages and collectives beside compute, over links of their own
  kBlocking,  // neither beside compute; narrow weights whose parts are cast, slow devices
  kSteady,    // messages beside compute between first backward and last forward; edges' latencies
  kAtWait,    // collectives begin where they are waited for; tensor-parallel groups of two
  kSharedLinks,  // nodes of two devices behind shared uplinks; arrivals, batch normalisation's sums
  kWholeParts,   // token slices and passes cost alike: a share of the micro-batch
};

CostTable PrimeCosts(const Program& program, PricesOf prices);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PRIME_COSTS_H_
