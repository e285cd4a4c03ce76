// A net like GNMT (Wu et al. 2016), the recurrent translator of BaPipe's and PipeDream's studies:
// LSTM layers with residuals, and attention from the first decoder layer. For planners: it has
// costs, and no layers that run.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGnmt(GnmtConfig()));
//
// Layers: source embedding; two LSTMs, one each way, and their concat; LSTMs, from the third layer
// on with a residual; target embedding; an LSTM, attention of its output to the encoder's, whose
// result goes beside the input of every later LSTM; the logits with their loss.
//
// Flops are of matrix products, as everywhere. Bytes are what a plain implementation keeps: of an
// LSTM four gates, the cell and the output of each token. One bias a gate.
#ifndef PIPELAB_MODELS_ZOO_GNMT_H_
#define PIPELAB_MODELS_ZOO_GNMT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct GnmtConfig {
  int64_t layers = 8;  // of the encoder, and of the decoder; the encoder's first goes both ways
  int64_t hidden = 1024;
  int64_t source_tokens = 50, target_tokens = 50;  // of a sample
  int64_t vocabulary = 32000;
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildGnmt(const GnmtConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_GNMT_H_
