// Megatron-LM's kernels where a model meets its vocabulary: embedding, head and loss. Those of
// parts of a vocabulary are public (WithMegatronVocabularyParts). Private to megatron_kernels.
#ifndef PIPELAB_MODELS_SPECS_MEGATRON_VOCABULARY_H_
#define PIPELAB_MODELS_SPECS_MEGATRON_VOCABULARY_H_

#include "models/graph/layer_spec.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/megatron_operations.h"

namespace pipelab {

// The attribute of a head that says which LossImplementation it has.
constexpr char kLossKernels[] = "loss_kernels";

// The kernels of a gpt_embedding and a gpt_head layer.
Kernels EmbeddingOperations(const LayerSpec& layer);
Kernels HeadKernels(const LayerSpec& layer, LossImplementation loss);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_MEGATRON_VOCABULARY_H_
