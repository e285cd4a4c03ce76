// RESULTS.md: one list of all claims that do not hold, every study's claims, those that are missed
// first, and every published table with its error.
//
//   std::vector<StudyOutcome> outcomes;                      // in the catalogue's order
//   WriteFileAtomically("results/RESULTS.md", ResultsPage(outcomes, items, options));
#ifndef PIPELAB_EXPERIMENTS_ALL_RESULTS_PAGE_H_
#define PIPELAB_EXPERIMENTS_ALL_RESULTS_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "experiments/all/claim_records.h"
#include "experiments/all/result_folder.h"
#include "experiments/published/coverage.h"

namespace pipelab {

struct StudyOutcome {
  std::string name;
  std::string failure;  // why it has no result, or its exit code with one; empty: none
  absl::optional<ResultFolder> result;
  // The comparison of deterministic columns with the committed ones: "equal", "N lines differ,
  // ..."; empty where there is nothing to compare with.
  std::string reference;
  // Why this run has none of the columns that are committed; empty: it has.
  std::string not_compared;

  int missed() const;  // claims
};

struct ResultsPageOptions {
  bool quick = false;
  std::vector<std::pair<std::string, std::string>> environment;  // to print: name, value
  // Those that are committed: what stands for studies that did not run.
  std::vector<ClaimRecord> committed;
};

std::string ResultsPage(const std::vector<StudyOutcome>& outcomes,
                        const std::vector<PublishedItem>& items, const ResultsPageOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_RESULTS_PAGE_H_
