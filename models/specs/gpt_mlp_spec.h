// The second half of a GPT block: y = x + dropout(gelu(norm(x) w1 + b1) w2 + b2), or with a gated
// linear unit (block_kinds.h). What it costs; gpt_mlp.cc runs it.
//
//   LayerSpec layer = GptMlpSpec({.name = "block0/mlp", .input = 1, .tokens = 128, .hidden = 256,
//                                 .inner = 1024});
//
// Output: {tokens, hidden}. Of the forward it keeps the input of the GELU [M, inner], or the gates
// and values [M, 2 inner], and the norm's mean and reciprocal deviation. The norm's output and the
// GELU's are computed again for the weight gradient: that costs a few percent of the pass (less,
// the wider the model) and saves 5 of 9 [M, hidden] with inner = 4 hidden.
#ifndef PIPELAB_MODELS_SPECS_GPT_MLP_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_MLP_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kGptMlp[] = "gpt_mlp";

struct GptMlpSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, inner = 0;
  FeedForwardKind kind = FeedForwardKind::kGelu;
  NormKind norm = NormKind::kLayer;
  bool exact_gelu = false;  // of kGelu: erf's, not the tanh form
  bool biases = true;       // of the products; a GELU has them
  bool residual = true;     // false: y = dropout(...), without x
  double dropout = 0;
  double stddev = 0.02, projection_stddev = 0.02;  // of w1, of w2
};

// In the order of LayerSpec::parameters, which lacks those that the layer has not: [C], [C],
// [C, F], [F], [F, C], [C]; with a gate w1 is [C, 2F] and b1 [2F].
struct GptMlpParameter {
  enum { kGamma, kBeta, kW1, kB1, kW2, kB2 };
};

LayerSpec GptMlpSpec(const GptMlpSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_MLP_SPEC_H_
