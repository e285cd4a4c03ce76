// Claims as claims.json, and back.
//
//   std::string text = ClaimsJson("graphpipe_scaling", claims);
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Claim> again, ParseClaims(text, "results/x/claims.json"));
//
// docs/results.md has the fields. Errors: InvalidArgument, one line with the file, the place and
// what would be right.
#ifndef PIPELAB_EXPERIMENTS_REPORT_CLAIM_JSON_H_
#define PIPELAB_EXPERIMENTS_REPORT_CLAIM_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/report/claim.h"

namespace pipelab {

std::string ClaimsJson(absl::string_view experiment, const std::vector<Claim>& claims);
absl::StatusOr<std::vector<Claim>> ParseClaims(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_CLAIM_JSON_H_
