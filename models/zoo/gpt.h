// GPT (Radford et al. 2018, 2019) as a chain of layers: embedding, then attention and MLP for each
// block, then head.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGpt({.layers = 4, .hidden = 128, .heads = 4,
//                                                    .tokens = 128, .vocabulary = 96}));
//   g.num_parameters();        // nothing is allocated: 52B parameters are as quick
//
// Norms are in front of each half block (GPT-2); the GELU is the tanh form. Starts as GPT-2: normal
// 0.02, the projections into the residual divided by sqrt(2 layers), zero biases.
#ifndef PIPELAB_MODELS_ZOO_GPT_H_
#define PIPELAB_MODELS_ZOO_GPT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/gpt_embedding_spec.h"

namespace pipelab {

struct GptConfig {
  int64_t layers = 0;  // blocks; the graph has 2 layers + 2
  int64_t hidden = 0, heads = 0;
  int64_t tokens = 0;  // of a sample (sequence length)
  int64_t vocabulary = 0;
  double dropout = 0;            // of the residual branches, [0, 1)
  bool tied_embeddings = false;  // one table for input and output: the tie "embedding"
  int64_t mlp_ratio = 4;         // the MLP's inner width / hidden
  Positions positions = Positions::kLearned;
  bool output_bias = false;  // of the logits; not with tied embeddings
};

// InvalidArgument names the field as an option, and its value: "--heads=3: heads must divide
// --hidden=32".
absl::StatusOr<ModelGraph> BuildGpt(const GptConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_GPT_H_
