// The layers of vocabulary_parts.h that run, for factory.cc: each is defined in the .cc file of its
// name. Float32 alone: a row's sum of exponentials goes from layer to layer.
#ifndef PIPELAB_MODELS_LAYERS_VOCABULARY_LAYERS_H_
#define PIPELAB_MODELS_LAYERS_VOCABULARY_LAYERS_H_

#include <memory>

#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

std::unique_ptr<Layer> MakeVocabularyEmbedding(const LayerSpec& spec);
std::unique_ptr<Layer> MakeVocabularyLoss(const LayerSpec& spec);
std::unique_ptr<Layer> MakeVocabularyShard(const LayerSpec& spec);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_VOCABULARY_LAYERS_H_
