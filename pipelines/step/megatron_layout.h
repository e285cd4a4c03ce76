// Megatron-LM's strings of what each stage of a pipeline has, --pipeline-model-parallel-layout.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<MegatronStage> stages,
//                            ParseMegatronLayout("Et*3|(tt|)*2L"));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> of_layer, StageOfLayerIn(stages, graph));
//   FormatMegatronLayout(stages)       // "Et*3|(t*2|)*2L"
//
// Stages are parted by '|': E is the embedding, t a Transformer layer, m a head that predicts
// further tokens, L the loss with the output layer. "t*4" is tttt, and "(t*4|)*2" repeats what is
// in parentheses, which do not nest. Commas mean nothing. A stage may be empty. The stage of number
// v P + p is the v-th of pipeline device p.
//
// A model's layers are those of the letters: the first is the embedding, the last the loss, and
// layers between whose names begin with the same word up to a '/' are one Transformer layer.
//
// Errors: InvalidArgument with the letter or stage and what would do.
#ifndef PIPELAB_PIPELINES_STEP_MEGATRON_LAYOUT_H_
#define PIPELAB_PIPELINES_STEP_MEGATRON_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct MegatronStage {
  bool embedding = false, loss = false;
  int64_t transformers = 0, token_heads = 0;

  bool empty() const { return !embedding && !loss && transformers == 0 && token_heads == 0; }
  friend bool operator==(const MegatronStage& a, const MegatronStage& b) {
    return a.embedding == b.embedding && a.loss == b.loss && a.transformers == b.transformers &&
           a.token_heads == b.token_heads;
  }
};

// Whether a layout is meant as one of Megatron-LM's, and not as numbers of layers.
bool IsMegatronLayout(absl::string_view layout);

// The embedding must be first, the loss last, each once, and t must be before m.
absl::StatusOr<std::vector<MegatronStage>> ParseMegatronLayout(absl::string_view layout);

// The shortest form: runs of letters as "t*4", of equal stages as "(t*4|)*6".
std::string FormatMegatronLayout(const std::vector<MegatronStage>& stages);

// Stages with so many Transformer layers each, the embedding with the first, the loss with the
// last.
std::vector<MegatronStage> StagesOfTransformers(const std::vector<int64_t>& transformers);

// [layer of the graph] Its stage. Refused: empty stages, and token heads other than the model's,
// all with the loss.
absl::StatusOr<std::vector<int>> StageOfLayerIn(const std::vector<MegatronStage>& stages,
                                                const ModelGraph& graph);

// The other way. Refused: a model of other layers, a Transformer layer in two stages, stages that
// are not ranges.
absl::StatusOr<std::vector<MegatronStage>> MegatronStagesOf(const ModelGraph& graph,
                                                            const std::vector<int>& stage_of_layer);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_MEGATRON_LAYOUT_H_
