// For tests of layers and stages: random data, a small GPT, and one layer with parameters on an
// arena of its own.
#ifndef PIPELAB_MODELS_LAYERS_TEST_LAYERS_H_
#define PIPELAB_MODELS_LAYERS_TEST_LAYERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "models/data/batch_source.h"
#include "models/data/token_fields.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "models/zoo/gpt.h"

namespace pipelab {

// Random data with any fields: normal floats and uniform ids, each field a stream of its own. But
// ids named "targets" are those of "tokens", one place on, floats named "targets" are uniform in
// [0, 1), ids named "..._length" are at least 1, and a third of the places of a padded field hold
// nothing.
class RandomData : public BatchSource {
 public:
  explicit RandomData(std::vector<DataField> fields) : BatchSource(std::move(fields)) {}
  void FillFloats(int field, int64_t step, int64_t first_sample,
                  absl::Span<float> out) const override;
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override;
};

// Uniform tokens; each target is the next number of the same stream.
class RandomTokens : public RandomData {
 public:
  RandomTokens(int64_t tokens, int64_t vocabulary) : RandomData(TokenFields(tokens, vocabulary)) {}
};

// What the layers of a graph read; places without ids only where every reader takes them.
std::vector<DataField> TestFieldsOf(const ModelGraph& graph);

// layers 2, hidden 16, heads 2, tokens 6, vocabulary 11: sizes that no vector length divides all
// of.
GptConfig SmallGpt(double dropout, bool tied);

// A random tensor: standard normal times `scale`, the same for the same name; of a part of a
// parameter, the same elements as the whole has.
Tensor RandomTensor(Backend* backend, Shape shape, const std::string& name, float scale,
                    const ParameterCut& cut = {});

// The shape of `samples` samples: the first dimension is times as long.
Shape RowsOf(const std::vector<int64_t>& sample_shape, int64_t samples);
// Random inputs of a layer: "x0", "x1", ...
std::vector<Tensor> RandomInputs(const LayerSpec& spec, Backend* backend, int64_t samples);

// One layer of `spec` with random parameters, ready to run `samples` samples of training step 3.
struct LayerRig {
  LayerRig(const LayerSpec& spec, Backend* backend, int64_t samples, bool training = true);

  LayerRig(const LayerRig&) = delete;  // the context points into it
  LayerRig& operator=(const LayerRig&) = delete;

  LayerSpec spec;
  std::unique_ptr<Layer> layer;
  std::vector<Parameter> parameters;
  BatchView view;
  LayerContext ctx;
  LayerStash stash;
  double loss = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TEST_LAYERS_H_
