#include "experiments/modern/megatron_stages.h"

#include <vector>

#include "pipelines/step/megatron_layout.h"

namespace pipelab {

std::string MegatronLayout(int64_t blocks, int64_t further, int64_t stages) {
  if (stages <= 1) return "";
  const bool counts_ends = blocks % stages != 0 && (blocks + 2) % stages == 0;
  std::vector<int64_t> of_stage(stages, (blocks + (counts_ends ? 2 : 0) + stages - 1) / stages);
  if (counts_ends) {
    --of_stage.front();
    --of_stage.back();
  } else {
    of_stage.back() = blocks - of_stage.back() * (stages - 1);
    if (of_stage.back() < 1) return "";
  }
  std::vector<MegatronStage> made = StagesOfTransformers(of_stage);
  made.back().token_heads = further;
  return FormatMegatronLayout(made);
}

}  // namespace pipelab
