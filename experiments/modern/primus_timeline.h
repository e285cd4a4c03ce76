// A run of AMD's Primus whose ranks recorded when each forward and backward began and ended, under
// 1F1B, beside simulations that are given these durations and nothing else: what is judged is the
// order of passes and what waits for what.
//
//   PIPELAB_ASSIGN_OR_RETURN(const PrimusRun run, ReadPrimusRun("primus_pp8"));
//   PIPELAB_ASSIGN_OR_RETURN(const PrimusTimeline timeline, ReplayPrimus(run));
//   report.AddTable(PrimusTimelineTable(timeline));
//   report.AddClaim(PrimusTimelineClaim(timeline));
//
// A folder has config.json (pp_size, num_mbs, train_iters) and pp_rank_N.json: by step, from "1",
// `total` and the lists fwd_start, fwd_end, bwd_start, bwd_end, in milliseconds since the rank's
// step began. Ranks begin a step together. The first step warms up and is left out.
#ifndef PIPELAB_EXPERIMENTS_MODERN_PRIMUS_TIMELINE_H_
#define PIPELAB_EXPERIMENTS_MODERN_PRIMUS_TIMELINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// In ms.
struct PrimusPass {
  double start = 0, end = 0;
};
struct PrimusRankStep {
  double total = 0;
  std::vector<PrimusPass> forwards, backwards;  // [micro-batch]
};
using PrimusRank = std::vector<PrimusRankStep>;  // [step]

struct PrimusRun {
  std::vector<PrimusRank> ranks;
  int micro_batches = 0;

  int steps() const { return static_cast<int>(ranks.front().size()); }
  double Milliseconds(int step) const;  // of the slowest rank
};

// Steps 2 to `steps` of one rank's file. Errors name the file, the step and the list.
absl::StatusOr<PrimusRank> ParsePrimusRank(absl::string_view text, absl::string_view what,
                                           int64_t steps, int64_t micro_batches);
absl::StatusOr<PrimusRun> ReadPrimusRun(const std::string& folder);

// In ms: of a mean step, and of all passes' begins.
struct PrimusReplay {
  std::string times;  // what the simulation was given
  double measured = 0, simulated = 0;
  double start_error = 0;  // the mean of |simulated - measured|

  double error() const { return simulated / measured - 1; }
};
using PrimusTimeline = std::vector<PrimusReplay>;

// First with each step's own times, which the claim judges, then with each stage's median.
absl::StatusOr<PrimusTimeline> ReplayPrimus(const PrimusRun& run);

Table PrimusTimelineTable(const PrimusTimeline& timeline);
// Without replays: not made.
Claim PrimusTimelineClaim(const PrimusTimeline& timeline);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_PRIMUS_TIMELINE_H_
