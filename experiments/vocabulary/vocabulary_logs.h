// The logged runs of vocabulary parallelism's table 5: each step and its passes, published beside
// simulated; and each step of the passes that were logged, which judges the schedule, its messages
// and the optimizer alone.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto steps, SimulateLogs(paper, cluster));
//   steps[0].replayed.time;      // published: steps[0].log.step_ms
#ifndef PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_LOGS_H_
#define PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_LOGS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/vocabulary.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "experiments/vocabulary/vocabulary_steps.h"

namespace pipelab {

struct VocabularyLogSteps {
  PublishedVocabularyLog log;
  VocabularySystem system = VocabularySystem::kBaseline;
  VocabularyStep simulated, replayed;
};

// NotFound: a log of another system.
absl::StatusOr<std::vector<VocabularyLogSteps>> SimulateLogs(const VocabularyPaper& paper,
                                                             const ClusterSpec& cluster);

// The log of this system, with as many tokens and words; null where there is none.
const VocabularyLogSteps* FindLog(const std::vector<VocabularyLogSteps>& logs,
                                  VocabularySystem system, int64_t tokens, int64_t vocabulary);
// `ours` of another model, each pass as much longer as those of the log took: the ends of a chain
// whose vocabulary is whole as the log's ends, other devices as its middle one.
VocabularyPasses ToldPasses(const VocabularyLogSteps& log, VocabularyPasses ours);

Table VocabularyLogsTable(const std::vector<VocabularyLogSteps>& steps);
// The passes of 1F1B and of parts of the head under Vocab-1: what other runs have, too.
Table VocabularyPassesTable(const std::vector<VocabularyLogSteps>& steps);
std::vector<Claim> VocabularyLogClaims(const std::vector<VocabularyLogSteps>& steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_LOGS_H_
