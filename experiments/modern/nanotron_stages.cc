#include "experiments/modern/nanotron_stages.h"

#include <vector>

#include "pipelines/step/megatron_layout.h"

namespace pipelab {
namespace {

// [stage] Blocks, before each stage has something to compute.
std::vector<int64_t> BlocksOfStages(const ModernModel& m, int64_t stages) {
  const int64_t block = m.hidden * (4 * m.heads * m.head_size + 3 * m.feed_forward);
  const int64_t all = m.layers * block + m.vocabulary * m.hidden;
  std::vector<int64_t> blocks(stages);
  int64_t sum = 0, stage = 0;
  for (int64_t b = 0; b < m.layers; ++b) {
    ++blocks[stage];
    sum += block;
    if (sum * stages > all * (stage + 1)) ++stage;
  }
  return blocks;
}

}  // namespace

std::string NanotronLayout(const ModernModel& model, int64_t stages) {
  if (stages <= 1) return "";
  std::vector<int64_t> blocks = BlocksOfStages(model, stages);
  for (int64_t s = 1; s + 1 < stages; ++s) {
    if (blocks[s] > 0) continue;
    int64_t from = s - 1;
    while (from > 0 && blocks[from] < 2) --from;
    if (blocks[from] < 2) return "";
    --blocks[from];
    ++blocks[s];
  }
  return FormatMegatronLayout(StagesOfTransformers(blocks));
}

}  // namespace pipelab
