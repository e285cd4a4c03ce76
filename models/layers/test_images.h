// For tests: layers of images, one by one, and small networks of them.
#ifndef PIPELAB_MODELS_LAYERS_TEST_IMAGES_H_
#define PIPELAB_MODELS_LAYERS_TEST_IMAGES_H_

#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

// One layer of each kind and form, with inputs of other layers, which do not exist: convolutions
// plain, strided, 1x7 and 7x1, with and without ReLU, norm, bias and input; pools; the others.
std::vector<LayerSpec> ImageLayers();

// Whether the layer has a kink (ReLU) or a jump of its gradient (maximum).
bool HasKinks(const LayerSpec& layer);

// Images of 8 x 8 x 2: an AmoebaNet-D of 3 normal and 2 reduction cells, 5 classes; a U-Net of 2
// levels, 3 classes a pixel. Of 16 x 16 x 2: a ResNet of 2 blocks, 4 classes. Of 32 x 32 x 2: a
// VGG-16 of 2 to 16 channels, 4 classes.
GroupedModel SmallAmoebaNet();
GroupedModel SmallUNet();
GroupedModel SmallResNet();
GroupedModel SmallVgg();

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TEST_IMAGES_H_
