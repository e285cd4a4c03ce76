// The small models of the tests of split layers (tensor_parallel_test, tensor_parallel_bytes_test).
#ifndef PIPELAB_MODELS_ZOO_SPLIT_MODELS_H_
#define PIPELAB_MODELS_ZOO_SPLIT_MODELS_H_

#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"
#include "models/graph/tensor_parallel.h"
#include "models/zoo/transformer.h"

namespace pipelab {

constexpr int64_t kSamples = 3, kTargetTokens = 16, kSourceTokens = 24, kHidden = 32, kHeads = 8,
                  kWords = 40;

inline ModelGraph EncoderDecoder(double dropout) {
  TransformerConfig c;
  c.layers = 1;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.feed_forward = 80;
  c.source_tokens = kSourceTokens;
  c.target_tokens = kTargetTokens;
  c.vocabulary = kWords;
  c.dropout = dropout;
  return *BuildTransformer(c);
}

inline std::vector<TensorParallel> Splits() {
  return {{2, false}, {4, false}, {8, false}, {2, true}, {4, true}, {8, true}};
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_SPLIT_MODELS_H_
