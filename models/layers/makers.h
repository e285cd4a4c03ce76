// The layers that run, one for each kind in models/specs: factory.cc chooses among them, and each
// is defined in the .cc file of its name.
//
//   std::unique_ptr<Layer> layer = MakeDense(graph.layers[1]);
//
// The specification is one that the kind's function made (DenseSpec).
#ifndef PIPELAB_MODELS_LAYERS_MAKERS_H_
#define PIPELAB_MODELS_LAYERS_MAKERS_H_

#include <memory>

#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

std::unique_ptr<Layer> MakeAdd(const LayerSpec& spec);
std::unique_ptr<Layer> MakeBatchNorm(const LayerSpec& spec);
std::unique_ptr<Layer> MakeClassifier(const LayerSpec& spec);
std::unique_ptr<Layer> MakeConcat(const LayerSpec& spec);
std::unique_ptr<Layer> MakeCrossAttention(const LayerSpec& spec);
std::unique_ptr<Layer> MakeDataInput(const LayerSpec& spec);
std::unique_ptr<Layer> MakeDense(const LayerSpec& spec);
std::unique_ptr<Layer> MakeElementLoss(const LayerSpec& spec);
std::unique_ptr<Layer> MakeEmbeddingBag(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGatConv(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGinConv(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptAttention(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptEmbedding(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptExperts(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptHead(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptLatentAttention(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGptMlp(const LayerSpec& spec);
std::unique_ptr<Layer> MakeImageConv(const LayerSpec& spec);
std::unique_ptr<Layer> MakeNorm(const LayerSpec& spec);
std::unique_ptr<Layer> MakePatchEmbedding(const LayerSpec& spec);
std::unique_ptr<Layer> MakePool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeRelu(const LayerSpec& spec);
std::unique_ptr<Layer> MakeSageConv(const LayerSpec& spec);
std::unique_ptr<Layer> MakeSubsample(const LayerSpec& spec);
std::unique_ptr<Layer> MakeUpConv(const LayerSpec& spec);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_MAKERS_H_
