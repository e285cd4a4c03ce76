// Which claims studies record, whatever comes out of them: experiments/results/claims.csv, by which
// a published table that no study answers any more is seen without running a study.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto records, ParseClaimRecords(text, "claims.csv"));
//   for (const std::string& what : Unanswered(items, records)) ...  // "GPipe ..., Table 2:
//   gpipe.x"
#ifndef PIPELAB_EXPERIMENTS_ALL_CLAIM_RECORDS_H_
#define PIPELAB_EXPERIMENTS_ALL_CLAIM_RECORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/published/coverage.h"
#include "experiments/report/claim.h"

namespace pipelab {

struct ClaimRecord {
  std::string study, claim;
  std::string source, tag;  // of the published figure; empty: an expectation of this project
};

// By id, whatever came out.
std::vector<ClaimRecord> RecordsOf(absl::string_view study, const std::vector<Claim>& claims);

absl::StatusOr<std::vector<ClaimRecord>> ParseClaimRecords(absl::string_view text,
                                                           absl::string_view what);
std::string ClaimRecordsCsv(const std::vector<ClaimRecord>& records);

// Those of one study.
std::vector<ClaimRecord> Select(const std::vector<ClaimRecord>& records, absl::string_view study);
// `records` with those of `study` in the place of what was there of it, else at the end.
void Replace(absl::string_view study, std::vector<ClaimRecord> of_study,
             std::vector<ClaimRecord>* records);

// Published tables and figures with a claim that has no record, "paper, what: claim" each.
std::vector<std::string> Unanswered(const std::vector<PublishedItem>& items,
                                    const std::vector<ClaimRecord>& records);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_CLAIM_RECORDS_H_
