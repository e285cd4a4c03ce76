// For tests of single layers: one of each kind that BERT, translation, pictures and recommendation
// add to a GPT's.
#ifndef PIPELAB_MODELS_LAYERS_TEST_SPECS_H_
#define PIPELAB_MODELS_LAYERS_TEST_SPECS_H_

#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

// Attention over all tokens and to a memory, with and without padding, heads narrower and wider
// than a share of the width, and such that each of the peaks that compete is the largest somewhere;
// norms, sinusoidal positions, patches of pictures, heads with a bias and with rows without a
// target, bags, data inputs, losses of numbers. Inputs are of layers that do not exist.
std::vector<LayerSpec> NetLayers();

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TEST_SPECS_H_
