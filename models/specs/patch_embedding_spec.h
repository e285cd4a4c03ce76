// The input of a Transformer over pictures: each square patch of the image through one dense layer,
// and positions that learn (Dosovitskiy et al., "An Image Is Worth 16x16 Words", ICLR 2021). What
// it costs; patch_embedding.cc runs it.
//
//   LayerSpec layer = PatchEmbeddingSpec({.name = "picture/embedding", .height = 32, .width = 32,
//                                         .channels = 3, .patch = 4, .hidden = 64});    // {64, 64}
//
// Output: {patches, hidden}, patches row by row, behind a row that learns (the class token) where
// there is one. It reads the data's image, channels last. Keeps
// nothing for the backward but the output's gradient; the weight gradient draws the image again.
#ifndef PIPELAB_MODELS_SPECS_PATCH_EMBEDDING_SPEC_H_
#define PIPELAB_MODELS_SPECS_PATCH_EMBEDDING_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kPatchEmbedding[] = "patch_embedding";

struct PatchEmbeddingSizes {
  std::string name;
  std::string field = kImage;                   // of the data: floats
  int64_t height = 0, width = 0, channels = 0;  // of the image
  int64_t patch = 0;                            // side; divides height and width (CHECKed)
  int64_t hidden = 0;
  bool class_token = false;
  double stddev = 0;  // of the weight; 0: 1 / sqrt(inputs)
  double position_stddev = 0.02;

  int64_t patches() const { return (height / patch) * (width / patch); }
  int64_t tokens() const { return patches() + (class_token ? 1 : 0); }
  int64_t patch_size() const { return patch * patch * channels; }
};

// Places in LayerSpec::parameters and Layer::parameters_. A patch is [row, column, channel].
struct PatchEmbeddingParameter {
  enum { kW, kB, kPositions, kClass };  // [patch size, C], [C], [T, C]; with a class token [C]
};

LayerSpec PatchEmbeddingSpec(const PatchEmbeddingSizes& sizes);
// What it was made of, but for the name, the field and the start.
PatchEmbeddingSizes PatchEmbeddingSizesOf(const LayerSpec& layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_PATCH_EMBEDDING_SPEC_H_
