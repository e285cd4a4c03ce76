// A language model whose vocabulary is divided by words among the devices of a pipeline (Yeung et
// al., "Balancing pipeline parallelism with vocabulary parallelism", MLSys 2025, arXiv 2411.05288).
//
//   PIPELAB_ASSIGN_OR_RETURN(ShardedVocabulary v,
//                            ShardVocabulary(gpt, /*parts=*/4, /*barriers=*/2));
//   options.stage_of_layer = v.StageOfLayer(chain);  // chain: of the model's own layers
//   options.scheme = "vocab_1f1b";                     // pipelines/schedules/vocabulary.h
//   PipelineTraining::Create(v.graph, batches, options);
//
// The embedding becomes parts and their sum, the head its norm, parts and the loss
// (specs/vocabulary_parts.h). Part k has the words [k V / parts, (k + 1) V / parts), in an
// embedding and a head that are tied both on one device.
#ifndef PIPELAB_MODELS_ZOO_VOCABULARY_SHARDS_H_
#define PIPELAB_MODELS_ZOO_VOCABULARY_SHARDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct ShardedVocabulary {
  ModelGraph graph;
  int parts = 0;

  // [layer] Its stage, as vocabulary.h numbers them. `chain` has the stage of each of the model's
  // own layers: the embedding is in stage 0, the head in the last.
  std::vector<int> StageOfLayer(const std::vector<int>& chain) const;
};

// `barriers`: 2 (Vocab-1), or 1 (Vocab-2: the parts make the input's gradient with the forward).
// InvalidArgument: a model that does not begin with an embedding of tokens alone or with learned
// positions, and end with a head over a table; more parts than words.
absl::StatusOr<ShardedVocabulary> ShardVocabulary(const ModelGraph& graph, int parts, int barriers);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_VOCABULARY_SHARDS_H_
