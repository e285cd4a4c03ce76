// What a synthesis claims, in a form that check_proof.h can judge without the search.
//
//   Proof proof;
//   proof.words = ...; proof.makespan = ...;      // this order takes so long
//   proof.bound = BestBound(problem);             // and none is shorter than this
//   proof.log = exact.log;                        // or, where there is a log, than the order
#ifndef PIPELAB_PIPELINES_SYNTHESIS_PROOF_H_
#define PIPELAB_PIPELINES_SYNTHESIS_PROOF_H_

#include <cstdint>
#include <string>

#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

// Nodes of a tree of decisions (partial.h), depth first, a letter each. Behind kProofBranch come
// the symbols that the device may run (I, F, W, O, L, forwards to the host; of each in the order of
// stages) and then its waiting.
constexpr char kProofBranch = '+';
constexpr char kProofBound = 'b';      // its lower bound is the makespan at least
constexpr char kProofDominated = 'd';  // closed before with the same passes done no later
constexpr char kProofStuck = 's';      // nothing can begin
constexpr char kProofDone = 'e';       // an order, and not shorter

struct Proof {
  OrderWords words;
  int64_t makespan = 0;  // ns
  Bound bound;
  std::string log;  // empty: the bound is all that is proven

  bool optimal() const { return bound.value >= makespan || !log.empty(); }
  // Proven: no order is shorter.
  int64_t lower_bound() const { return optimal() ? makespan : bound.value; }
  double gap() const {
    const auto length = static_cast<double>(makespan);
    return length > 0 ? (length - static_cast<double>(lower_bound())) / length : 0;
  }
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_PROOF_H_
