// What others logged of the code of Seq1F1B's authors on 8 A100, beside the same steps simulated:
// GPTs of 1.3B to 7B, P = 4, samples of 4096 to 32768 tokens in 1 to 8 slices.
//
//   PIPELAB_ASSIGN_OR_RETURN(Seq1F1BRunSteps run, SimulateRun(paper.runs[0], gap_us, cluster));
//   run.simulated.tokens_per_second;     // by the kernels' times
//   run.replayed.tokens_per_second;      // by the passes that were measured
//
// A log has the passes' times on the fastest and on the slowest rank. The slowest is the last
// stage, which has the head. All others are taken to be as fast as the fastest. Replayed steps take
// these passes, so that what is left to predict is the schedule, its messages and the optimizer.
//
// Memory is PyTorch's: `allocated` at most in the first step, before Adam has made its moments;
// `reserved` at most of all steps, with what its allocator cannot use. A vocabulary of 50257 words
// is padded to 50304 by T = 1, and 50432 by T = 2.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_RUNS_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_RUNS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/seq1f1b.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct Seq1F1BRunSteps {
  PublishedSeq1F1BRun run;
  int64_t launch_gap_us = 0;
  double simulated = 0, replayed = 0;  // tokens a second, of all GPUs
  std::array<Bytes, 4> memory;         // at most in the first step, by stage
};

absl::StatusOr<Seq1F1BRunSteps> SimulateRun(const PublishedSeq1F1BRun& run, int64_t launch_gap_us,
                                            const ClusterSpec& cluster);

// For each launch gap all runs.
using Seq1F1BRunsByGap = std::vector<std::vector<Seq1F1BRunSteps>>;
// Both with the first gap.
Table Seq1F1BRunsTable(const Seq1F1BRunsByGap& all);
Table Seq1F1BRunsMemoryTable(const Seq1F1BRunsByGap& all);
std::vector<Claim> Seq1F1BRunClaims(const Seq1F1BRunsByGap& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_RUNS_H_
