// What the study claims of the rows.
//
//   for (Claim& claim : ModernClaims(all)) report.AddClaim(std::move(claim));
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_CLAIMS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_CLAIMS_H_

#include <vector>

#include "experiments/modern/modern_results.h"
#include "experiments/report/claim.h"

namespace pipelab {

// Without rows the claims are not made.
std::vector<Claim> ModernClaims(const std::vector<ModernResult>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_CLAIMS_H_
