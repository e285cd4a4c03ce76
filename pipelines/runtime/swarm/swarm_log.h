// Reads the log of a swarm's coordinator, one event per line, and proves from it that each gradient
// counted once.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::string log, ReadFile("swarm.log"));
//   PIPELAB_ASSIGN_OR_RETURN(const SwarmProof proof, CheckSwarmLog(log));
//   proof.steps;                            // each with every gradient once
//
// Events, each followed by `key=value` words:
//   start   step stages micro_batches       a coordinator's life begins, or everything goes back
//   join, ready, move   peer ...            for people
//   drop    peer why="..."
//   count   step stage micro_batch peer     the trainer has the answer
//   lose    step stage micro_batch peer     its peer is gone: it must be asked for again
//   commit  step stage shares=3:0,4;7:1,2   whose gradients were summed: peer:micro-batches
//   step    step loss                       all stages of it are committed
//
// The proof: every commit of a stage names each micro-batch once, each for the peer for which it
// was counted and not lost, and a step ends with a commit of each stage, once. DataLoss names the
// line otherwise. A last line without its end, where a coordinator was killed, is left out.
#ifndef PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_
#define PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct SwarmProof {
  int64_t steps = 0;      // that stand at the end, from step 0 or the first start on
  int64_t gradients = 0;  // (step, stage, micro-batch) of them, each once
  int64_t lost = 0;       // that were counted, lost with their peers, and asked for again
  int64_t redone = 0;     // steps that were undone by a start, and done again
  int64_t drops = 0;      // peers
};

absl::StatusOr<SwarmProof> CheckSwarmLog(absl::string_view log);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_
