// The claims of every study and what came out: experiments/results/claims.csv. A claim that turns
// is seen against it, and a published table that no study answers any more. Records are those of
// --quick, and of a full run for the claims that --quick does not make.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto records, ParseClaimRecords(text, "claims.csv"));
//   for (const std::string& what : Unanswered(items, records)) ...
//       // "GPipe ..., Table 2: gpipe.x"
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
  std::string state;        // ClaimStateName; empty: not recorded yet
  // What came out, with 6 digits and in `unit`, or the errors of a table. Empty where it is
  // measured or replayed, since no two runs agree.
  std::string value, unit;
  std::string published, accepted;
  std::string reason;  // of one that does not hold; not compared, since it may have measured values
  std::string run;     // "full": of a run without --quick; empty: of --quick
  std::string changed;  // the last turn, and which it is: "turn 2: missed -> met" (TurnOf)
};

// Whether claims of the state are in RESULTS.md's list of what does not hold.
bool DoesNotHold(absl::string_view state);

// By id, with `changed` empty. `full`: of a run without --quick.
std::vector<ClaimRecord> RecordsOf(absl::string_view study, const std::vector<Claim>& claims,
                                   bool full = false);
// What to commit after a run of a study: its records, but what is committed of claims that are the
// other kind of run's (`run`).
std::vector<ClaimRecord> ToCommit(const std::vector<ClaimRecord>& committed,
                                  std::vector<ClaimRecord> now, bool full);

absl::StatusOr<std::vector<ClaimRecord>> ParseClaimRecords(absl::string_view text,
                                                           absl::string_view what);
std::string ClaimRecordsCsv(const std::vector<ClaimRecord>& records);

// The records of one study.
std::vector<ClaimRecord> Select(const std::vector<ClaimRecord>& records, absl::string_view study);
// `records` with those of `study` in the place of what was there of it, else at the end.
void Replace(absl::string_view study, std::vector<ClaimRecord> of_study,
             std::vector<ClaimRecord>* records);

// How `now` turned from what is committed: "missed -> met; accepted 1.4x to 1.8x -> 1.3x to 1.8x".
// Empty: state, published figure and accepted range are the same. The value is no turn.
std::string TurnOf(const ClaimRecord& committed, const ClaimRecord& now);
// Sets `changed` of each record of `now`: its turn, numbered from 1, else what is committed.
void NoteTurns(const std::vector<ClaimRecord>& committed, std::vector<ClaimRecord>* now);

// A line for each claim of one study that is not as committed, with what to do about it.
std::vector<std::string> ClaimDifferences(const std::vector<ClaimRecord>& committed,
                                          const std::vector<ClaimRecord>& now);
// A line for each record whose `changed` CHANGELOG.md does not explain: it must hold
// "`CLAIM` CHANGED: WHY", on as many lines as it takes. A turn there and back has two numbers, and
// needs two lines.
std::vector<std::string> Unexplained(const std::vector<ClaimRecord>& committed,
                                     absl::string_view changelog);

// Published tables and figures with a claim that has no record, "paper, what: claim" each.
std::vector<std::string> Unanswered(const std::vector<PublishedItem>& items,
                                    const std::vector<ClaimRecord>& records);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_CLAIM_RECORDS_H_
