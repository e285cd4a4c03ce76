// A layer that runs: forward, input gradient, weight gradient, on any Backend.
//
// Life of one micro-batch: Forward(inputs) -> y; later BackwardInput(dy) -> a gradient an input;
// later BackwardWeight(). Most layers have one input: see UnaryLayer.
// What passes from one to the next lies in the micro-batch's LayerStash, which the caller keeps. A
// layer holds no state of a micro-batch itself, so any number of them can be in flight.
//
// A micro-batch may come in slices of its samples' tokens, each of which has the life and the stash
// of a micro-batch; forwards run in token order, input gradients from the last slice to the first.
// What slices see of one another lies in a stash of the micro-batch (LayerContext::sequence).
#ifndef PIPELAB_MODELS_LAYERS_LAYER_H_
#define PIPELAB_MODELS_LAYERS_LAYER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/tensor/host_values.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/layer_spec.h"
#include "models/graph/token_run.h"  // IWYU pragma: export

namespace pipelab {

// A parameter's value and where its gradient is added: of the activations' type, where that is
// bfloat16 a working copy of float32 numbers that the layer never sees; and float32. A tied
// parameter that one stage uses twice has one value and two gradients.
struct Parameter {
  Tensor value;
  Tensor gradient;
};

// What a layer reads of one micro-batch's (or, in a device group, one member's) samples.
struct BatchView {
  // In the order of LayerSpec::data; shapes are a sample's with the first dimension times the
  // samples.
  std::vector<Tensor> fields;
  // The same ids for the host, where the fields lie on a device; else empty.
  std::vector<std::vector<int32_t>> host_ids;

  absl::Span<const int32_t> HostIdsOf(int field) const {
    return host_ids.empty() ? fields[field].i32() : absl::MakeConstSpan(host_ids[field]);
  }
};

// Where a router's choices go: rows of each expert, and choices that a capacity drops.
struct ExpertLoads {
  std::vector<int64_t> rows;
  int64_t dropped = 0;
};

// A pass of inference: rows are the tokens of the runs, whose sequences' earlier tokens are in
// caches. A layer's cache is its LayerContext::sequence, which the first pass allocates.
struct CachedPass {
  absl::Span<const TokenRun> runs;
  absl::Span<const int32_t> tokens;  // ids, a row each; for layers that look them up
  int64_t slots = 0, slot_tokens = 0;
};

struct LayerStash;
class ChunkExchange;  // chunk_exchange.h
class TensorPeers;    // tensor_peers.h
class GraphPeers;     // graph_peers.h

struct LayerContext {
  Backend* backend = nullptr;
  int64_t step = 0;          // of training; keys dropout
  int64_t first_sample = 0;  // index of row 0's sample in the step's batch; keys dropout
  int64_t samples = 0;
  TokenSlice slice;                    // of each sample; rows are [samples * the slice's tokens]
  const CachedPass* cached = nullptr;  // null: whole samples, or slices of them
  // The stash of this layer and micro-batch, for all of its slices, from the first one's forward to
  // its input gradient, which empties it. Null for whole samples.
  LayerStash* sequence = nullptr;
  uint64_t seed = 0;
  bool training = true;  // false: no dropout
  float loss_scale =
      1;  // the gradient of the loss is scaled by it: 1 / targets in the step's batch
  const BatchView* batch = nullptr;
  TensorPeers* peers = nullptr;  // that compute the layer with this device; null: it does alone
  // That have the other tokens of the same samples (LayerSpec::context); null: all are here.
  TensorPeers* context = nullptr;
  // With which passes of other stages the slice's one exchanges attention; null: with none.
  ChunkExchange* exchange = nullptr;
  // That have other shares of the layers' experts, in the order of shares; null: all are here.
  TensorPeers* experts = nullptr;
  // The micro-batch's blocks of a graph, the first of which the first layer computes: a layer on a
  // graph knows its own one (models/specs/graph_conv_spec.h), whose sources are its input's rows
  // and whose targets are its output's.
  absl::Span<const GraphIndex> graph;
  // That have the other vertices of these blocks; null: all are here.
  GraphPeers* graph_peers = nullptr;
  // That have the other rows of the micro-batch, where batch normalisation is to use the statistics
  // of all of them; null: of the rows that are here.
  TensorPeers* copies = nullptr;
  // Equal parts of the samples, each of which batch normalisation treats by itself: what copies
  // with statistics of their own compute, on one device.
  int64_t norm_parts = 1;
  double* loss_sum = nullptr;  // a loss layer adds its sum over targets here
  // A layer with experts adds its choices' here, where somebody asks and the host knows them.
  ExpertLoads* loads = nullptr;
  // What a loss layer predicts, row by row, is added here, where somebody asks for it in an
  // evaluation, or in a pass with caches, of the runs that predict: logits [rows, classes], or an
  // element loss's inputs (before the sigmoid).
  std::vector<float>* predictions = nullptr;
};

// For loss layers; does nothing where nobody asks.
inline void AddPredictions(const LayerContext& ctx, const Tensor& y) {
  if (ctx.predictions == nullptr) return;
  const std::vector<float> values = HostValues(y);
  ctx.predictions->insert(ctx.predictions->end(), values.begin(), values.end());
}

inline void AddLoads(const ExpertLoads& more, ExpertLoads* sum) {
  sum->rows.resize(std::max(sum->rows.size(), more.rows.size()));
  for (size_t e = 0; e < more.rows.size(); ++e) sum->rows[e] += more.rows[e];
  sum->dropped += more.dropped;
}

// What a layer leaves from one pass to the next, for one micro-batch or slice.
struct LayerStash {
  std::vector<Tensor> tensors;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // `inputs` are in the order of LayerSpec::inputs (none for a layer that reads the data), and not
  // written to. Returns the output (empty for a loss).
  virtual Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                         LayerStash* stash) = 0;
  // The same inputs again, or empty tensors where InputUse says that none are needed; so in the
  // weight part. `dy` is empty for a loss and given up: the layer may write to it, keep it or free
  // it early. Returns a gradient for each input, no two of which share memory.
  virtual std::vector<Tensor> BackwardInput(const LayerContext& ctx,
                                            absl::Span<const Tensor> inputs, Tensor dy,
                                            LayerStash* stash) = 0;
  // Adds to the gradients of the parameters, in ParameterSpec order; empties the stash.
  virtual void BackwardWeight(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                              LayerStash* stash) = 0;

  // After the last micro-batch of an optimizer step: statistics of its micro-batches go into the
  // running ones. Once a step, also where the step's gradients come from other stages too.
  virtual void EndStep(Backend*) {}

  // The parameters in the order of LayerSpec::parameters; set before the first pass, and between
  // micro-batches by who sums gradients in several places.
  void SetParameters(std::vector<Parameter> parameters) { parameters_ = std::move(parameters); }
  // The same for LayerSpec::statistics; set once.
  void SetStatistics(std::vector<Tensor> statistics) { statistics_ = std::move(statistics); }

 protected:
  std::vector<Parameter> parameters_;
  std::vector<Tensor> statistics_;
};

// A layer of one input, or of none (then x and its gradient are empty).
class UnaryLayer : public Layer {
 public:
  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) final {
    return Run(ctx, Only(inputs), stash);
  }
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) final {
    std::vector<Tensor> gradients(1);
    gradients[0] = InputGradient(ctx, Only(inputs), std::move(dy), stash);
    if (inputs.empty()) gradients.clear();
    return gradients;
  }
  void BackwardWeight(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                      LayerStash* stash) final {
    WeightGradient(ctx, Only(inputs), stash);
  }

 private:
  virtual Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) = 0;
  virtual Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                               LayerStash* stash) = 0;
  virtual void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) = 0;

  const Tensor& Only(absl::Span<const Tensor> inputs) const {
    return inputs.empty() ? none_ : inputs[0];
  }

  const Tensor none_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_LAYER_H_
