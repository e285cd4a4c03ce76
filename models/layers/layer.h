// A layer that runs: forward, input gradient, weight gradient, on any Backend.
//
// Life of one micro-batch: Forward(x) -> y; later BackwardInput(dy) -> dx; later BackwardWeight().
// What passes from one to the next lies in the micro-batch's LayerStash, which the caller keeps. A
// layer holds no state of a micro-batch itself, so any number of them can be in flight.
#ifndef PIPELAB_MODELS_LAYERS_LAYER_H_
#define PIPELAB_MODELS_LAYERS_LAYER_H_

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// A parameter's value and where its gradient is added. A tied parameter that one stage uses twice
// has one value and two gradients.
struct Parameter {
  Tensor value;
  Tensor gradient;
};

// One micro-batch's (or, in a device group, one member's rows of the) view of the data set.
struct BatchView {
  Tensor tokens_M;   // int32 [samples * tokens]; empty where the stage has no layer that reads them
  Tensor targets_M;  // int32
};

struct LayerContext {
  Backend* backend = nullptr;
  int64_t step = 0;          // of training; keys dropout
  int64_t first_sample = 0;  // index of row 0's sample in the step's batch; keys dropout
  int64_t samples = 0;
  uint64_t seed = 0;
  bool training = true;  // false: no dropout
  float loss_scale = 1;  // the gradient of the loss is scaled by it: 1 / tokens in the step's batch
  const BatchView* batch = nullptr;
  double* loss_sum = nullptr;  // a loss layer adds its sum over tokens here
};

// What a layer leaves from one pass to the next, for one micro-batch.
struct LayerStash {
  std::vector<Tensor> tensors;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // `x` is the input (empty for a layer that reads the data). Returns the output (empty for a
  // loss).
  virtual Tensor Forward(const LayerContext& ctx, const Tensor& x, LayerStash* stash) = 0;
  // `x` is the same input again; `dy` is empty for a loss and given up: the layer may keep it or
  // free it early. Returns dx (empty when x is empty).
  virtual Tensor BackwardInput(const LayerContext& ctx, const Tensor& x, Tensor dy,
                               LayerStash* stash) = 0;
  // Adds to the gradients of the parameters, in ParameterSpec order; empties the stash.
  virtual void BackwardWeight(const LayerContext& ctx, const Tensor& x, LayerStash* stash) = 0;

  // The parameters in the order of LayerSpec::parameters; set before the first pass, and between
  // micro-batches by who sums gradients in several places.
  void SetParameters(std::vector<Parameter> parameters) { parameters_ = std::move(parameters); }

 protected:
  std::vector<Parameter> parameters_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_LAYER_H_
