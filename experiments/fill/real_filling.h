// Real jobs in the real gaps of a small training here: GPipe with two micro-batches on two devices,
// which classify pictures while they wait.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RealFilling real, RunRealFilling({}));
//   report.AddTable(RealFillingTable(real));
//   for (Claim& c : RealFillingClaims(real)) report.AddClaim(std::move(c));
//
// Two trainings of the same bits take steps in turns, one with fill jobs and one without, so that
// both meet the same neighbours on the machine. A device needs a core of its own: where others use
// the machine, claims of times are not made.
#ifndef PIPELAB_EXPERIMENTS_FILL_REAL_FILLING_H_
#define PIPELAB_EXPERIMENTS_FILL_REAL_FILLING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "tools/base/units.h"

namespace pipelab {

struct RealFillingOptions {
  int steps = 30;              // of each training, measured
  int64_t pictures = 1 << 20;  // more than the gaps hold
  int64_t of_piece = 1;        // pictures
};

struct RealFilling {
  std::vector<double> without_ms, with_ms;  // [step] of the trainings
  Nanoseconds foreseen, filled;             // on all devices
  int64_t pictures = 0;                     // classified
  Nanoseconds alone;                        // a picture, by itself on one core, the other busy
  bool same_bits = false;                   // losses and parameters of both trainings
  bool same_answers = false;                // pictures' and those of the job alone
  std::vector<double> gap_errors;           // of foreseen gaps in each step, one core per device
  std::vector<std::string> ended;           // why fill jobs were
  int cores = 0;
  double core_share = 0;  // processor time of the plain training's passes, over their wall time

  double slowdown() const;  // median over median - 1
  double share() const;     // pictures done, of those that the idle time holds at the job's speed
};

absl::StatusOr<RealFilling> RunRealFilling(const RealFillingOptions& options);
Table RealFillingTable(const RealFilling& real);
std::vector<Claim> RealFillingClaims(const RealFilling& real);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FILL_REAL_FILLING_H_
