// Follows the log of an exact search. Private to check_proof; written apart from partial.h.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_CHECK_TREE_H_
#define PIPELAB_PIPELINES_SYNTHESIS_CHECK_TREE_H_

#include "absl/status/status.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/proof.h"

namespace pipelab {

// That no order is shorter than proof.makespan, by proof.log.
absl::Status CheckTree(const SynthesisProblem& problem, const Proof& proof);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_CHECK_TREE_H_
