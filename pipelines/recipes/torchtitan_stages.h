// How torchtitan divides a model's layers over stages. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_STAGES_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "pipelines/step/megatron_layout.h"

namespace pipelab {

// Its own division: the embedding counts as `first` layers and the output as `last`; the first
// stages have one more where the rest does not divide. InvalidArgument with how many stages would
// do.
absl::StatusOr<std::vector<MegatronStage>> TorchtitanStages(int64_t layers, int64_t stages,
                                                            int64_t first = 1, int64_t last = 1);

// The stages of lists of modules: [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]].
absl::StatusOr<std::vector<MegatronStage>> StagesOfModules(const nlohmann::json& parts,
                                                           int64_t layers);
// The same as a TOML value.
std::string ModulesOfStages(const std::vector<MegatronStage>& stages);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_TORCHTITAN_STAGES_H_
