// Damaged inputs from one seed.
#include <vector>

#include "experiments/report/claim.h"
#include "experiments/report/claim_json.h"
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(ClaimJsonFuzz, Mutations) {
  Claim of_paper = PaperClaim("fuzz.gain", "throughput", "A paper, Table 2", "read");
  of_paper.unit = "x";
  Published(&of_paper, 1.05, 1.28);
  Found(&of_paper, Origin::kSimulated, 1.43);
  MetWithin(&of_paper, 1.5, 1.8, "the network is slower");
  Claim own = OwnClaim("fuzz.table", "a table");
  own.unit = "ms";
  MetWithinErrors(&own, ErrorsOf({{"K=2", 1, 1.1}, {"K=4", 2, 2.5}}), 0.5, "why");
  RunMutations({ClaimsJson("fuzz", {of_paper}), ClaimsJson("fuzz", {of_paper, own})}, 20000);
}

}  // namespace
}  // namespace pipelab
