// What GPipe's tables claim, beside what came out.
//
//   for (Claim& c : LargestModelClaims(family, rows)) report.AddClaim(std::move(c));
//   report.AddClaim(ThroughputClaim(grid));
#ifndef PIPELAB_EXPERIMENTS_SCALING_GPIPE_CLAIMS_H_
#define PIPELAB_EXPERIMENTS_SCALING_GPIPE_CLAIMS_H_

#include <vector>

#include "experiments/published/gpipe.h"
#include "experiments/report/claim.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/largest_models.h"
#include "experiments/scaling/throughput_grid.h"

namespace pipelab {

// Table 1's three rows of figures, and the headline: how much larger a model the most accelerators
// train.
std::vector<Claim> LargestModelClaims(const GpipeFamily& family,
                                      const std::vector<LargestModel>& rows);
// Table 2 or 3 for one family.
Claim ThroughputClaim(const ThroughputGrid& grid);
// The shares of a step, which cannot be compared: why.
Claim OverheadClaim(const GpipeFamily& family, const PublishedOverheads& published);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_GPIPE_CLAIMS_H_
