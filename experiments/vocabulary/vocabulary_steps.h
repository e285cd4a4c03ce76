// Steps of a GPT whose vocabulary is large, as "Balancing Pipeline Parallelism with Vocabulary
// Parallelism" (Yeung et al., MLSys 2025, arXiv 2411.05288) measured them, simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(VocabularyStep s, SimulateVocabulary(
//       VocabularySystem::kVocab1, VocabularySizes(), cluster));
//   s.mfu;   // 0 to 1
#ifndef PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_
#define PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/published/vocabulary.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

enum class VocabularySystem : uint8_t {
  kBaseline,       // 1F1B, as many blocks on every device, the vocabulary on the first and the last
  kRedistributed,  // 1F1B, blocks moved from the last device to others
  kVocab1,         // two barriers
  kVocab2,         // one
  kInterlaced,     // all devices stop for the vocabulary at the same time
  kVHalf,          // two stages a device, the vocabulary on the first device
  kVHalfVocab1,    // the same, two barriers
};
const char* VocabularySystemName(VocabularySystem system);
absl::StatusOr<VocabularySystem> FindVocabularySystem(absl::string_view name);  // or NotFound
bool IsDivided(VocabularySystem system);  // the vocabulary, among all devices

struct VocabularySizes {
  int devices = 32, micro_batches = 128;
  int64_t layers = 64, hidden = 5120, heads = 40, tokens = 2048, vocabulary = 32000;
  // Blocks of a redistributed model on the last device; else LastBlocks.
  absl::optional<int64_t> last_blocks = absl::nullopt;
};

VocabularySizes SizesOf(const PublishedVocabularyRun& run, int64_t tokens, int64_t vocabulary);

// A redistributed model's blocks on the last device: as many as the loss leaves of a device's share
// of the operations, rounded up. So it is in each log of the authors' runs. The others share the
// rest, the first ones the fewer.
int64_t LastBlocks(const VocabularySizes& sizes);

// What a micro-batch's passes take: by device, those of the chain, with embedding and head where
// they are whole; `output` is both passes of a part of the head, `input` of one of the embedding.
struct VocabularyPasses {
  std::vector<Nanoseconds> forward, backward, output, input;
};

// time * to / from, rounded.
Nanoseconds Scaled(Nanoseconds time, Nanoseconds to, Nanoseconds from);

inline constexpr double kDevicePeakTflops = 312;  // of an A100 in bfloat16

struct VocabularyStep {
  double mfu = 0;  // of kDevicePeakTflops, by PTD-P's count of operations
  Nanoseconds time;
  Bytes memory;             // of the fullest device
  int in_flight = 0;        // of the chain's first stage; not where backwards are in two parts
  VocabularyPasses passes;  // not of V-Half
};

struct VocabularyOptions {
  VocabularyExchange exchange = VocabularyExchange::kCollectives;
  // Not V-Half's. It takes the place of the kernels' times; what it leaves empty, and parts of the
  // embedding, keep these.
  absl::optional<VocabularyPasses> passes;
  bool free_exchange = false;  // of collectives: they have no bytes and no steps
};
absl::StatusOr<VocabularyStep> SimulateVocabulary(
    VocabularySystem system, const VocabularySizes& sizes, const ClusterSpec& cluster,
    const VocabularyOptions& options = VocabularyOptions());

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_STEPS_H_
