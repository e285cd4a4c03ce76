// The measured tables of vocabulary parallelism, cell by cell: published beside simulated.
#ifndef PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_TABLE_H_
#define PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_TABLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/published/vocabulary.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "experiments/vocabulary/vocabulary_logs.h"
#include "experiments/vocabulary/vocabulary_steps.h"

namespace pipelab {

struct VocabularyCell {
  PublishedVocabularyCell published;
  VocabularySystem system = VocabularySystem::kBaseline;
  // The same where nothing is exchanged.
  VocabularyStep as_collectives, as_messages;
  // Steps of table 5 on more GPUs than its logs are of: passes as these tell them (ToldPasses).
  absl::optional<VocabularyStep> told;
};

// NotFound: a cell of another system.
absl::StatusOr<std::vector<VocabularyCell>> SimulateCells(
    const VocabularyPaper& paper, const std::vector<VocabularyLogSteps>& logs,
    const ClusterSpec& cluster);
Table VocabularyTable(const std::vector<VocabularyCell>& cells);
std::vector<Claim> VocabularyClaims(const std::vector<VocabularyCell>& cells);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_TABLE_H_
