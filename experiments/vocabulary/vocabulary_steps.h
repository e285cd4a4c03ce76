// Steps of a GPT whose vocabulary is large, as "Balancing Pipeline Parallelism with Vocabulary
// Parallelism" (Yeung et al., MLSys 2025, arXiv 2411.05288) measured them, simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(VocabularyStep s, SimulateVocabulary(
//       VocabularySystem::kVocab1, VocabularySizes(), cluster, VocabularyExchange::kMessages));
//   s.mfu;   // 0 to 1
#ifndef PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_
#define PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

enum class VocabularySystem : uint8_t {
  kBaseline,       // 1F1B, as many blocks on every device, the vocabulary on the first and the last
  kRedistributed,  // 1F1B, blocks moved so that the longest stage has the fewest operations
  kVocab1,         // two barriers
  kVocab2,         // one
  kInterlaced,     // all devices stop for the vocabulary at the same time
  kVHalf,          // two stages a device, the vocabulary on the first device
  kVHalfVocab1,    // the same, two barriers
};
const char* VocabularySystemName(VocabularySystem system);
bool IsDivided(VocabularySystem system);  // the vocabulary, among all devices

struct VocabularySizes {
  int devices = 32, micro_batches = 128;
  int64_t layers = 64, hidden = 5120, heads = 40, tokens = 2048, vocabulary = 32768;
};

struct VocabularyStep {
  double mfu = 0;  // of the device's bfloat16 peak, by PTD-P's count of operations
  Nanoseconds time;
  Bytes memory;       // of the fullest device
  int in_flight = 0;  // of the chain's first stage; not where backwards are in two parts
};

absl::StatusOr<VocabularyStep> SimulateVocabulary(VocabularySystem system,
                                                  const VocabularySizes& sizes,
                                                  const ClusterSpec& cluster,
                                                  VocabularyExchange exchange);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_
