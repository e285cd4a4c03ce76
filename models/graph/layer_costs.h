// What one layer costs for a number of samples: flops, and the bytes that it holds pass by pass.
#ifndef PIPELAB_MODELS_GRAPH_LAYER_COSTS_H_
#define PIPELAB_MODELS_GRAPH_LAYER_COSTS_H_

#include "tools/base/units.h"

namespace pipelab {

// Costs of one layer for a number of samples, or for a slice of their tokens. Bytes are what the
// running layer allocates (float32).
struct LayerCosts {
  Flops forward, backward_input, backward_weight;
  Bytes output;           // the activation that it hands on (0 for a loss)
  Bytes kept;             // left by the forward for the backward, besides the inputs
  Bytes kept_for_weight;  // left by the input-gradient part for the weight part, besides the inputs
  // The most held during a pass above the level at its start, results included; its inputs
  // (forward) and its output gradient (backward) are part of that starting level.
  Bytes forward_peak, backward_peak, backward_input_peak, backward_weight_peak;

  // For slices only; 0 for whole samples. What a forward that drops its activations leaves of
  // `kept` all the same, because the forwards of later slices read it. Where it is not 0: the peak
  // of the forward that rebuilds the rest.
  Bytes kept_when_dropped, recompute_peak;
  // What the backward leaves for those of the earlier slices, less what it was left by the later
  // ones and releases. The slices of a sample come to 0.
  Bytes carried;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_LAYER_COSTS_H_
