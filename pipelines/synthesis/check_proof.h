// Judges a proof (proof.h) by itself: no code of the search, of its bounds or of its evaluation.
//
//   PIPELAB_RETURN_IF_ERROR(CheckProof(problem, proof));
//
// The order is replayed by the simulator, the bound's numbers are computed again from the problem,
// and a log of the exact search is followed node by node: every way that it closes must be closed
// for the reason that it names. InvalidArgument says what does not hold. It takes about as long as
// the search and remembers every state of it.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_CHECK_PROOF_H_
#define PIPELAB_PIPELINES_SYNTHESIS_CHECK_PROOF_H_

#include "absl/status/status.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/proof.h"

namespace pipelab {

absl::Status CheckProof(const SynthesisProblem& problem, const Proof& proof);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_CHECK_PROOF_H_
