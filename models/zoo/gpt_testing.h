// The smallest GPT that tests of cuts share.
//
//   const ModelGraph graph = SmallestGpt(/*layers=*/8);   // blocks; 18 layers of the graph
#ifndef PIPELAB_MODELS_ZOO_GPT_TESTING_H_
#define PIPELAB_MODELS_ZOO_GPT_TESTING_H_

#include <cstdint>

#include "models/graph/layer_spec.h"
#include "models/zoo/gpt.h"

namespace pipelab {

inline ModelGraph SmallestGpt(int64_t layers) {
  GptConfig config;
  config.layers = layers;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = 8;
  config.vocabulary = 50;
  return BuildGpt(config).value();
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_GPT_TESTING_H_
