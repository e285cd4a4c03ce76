#include "models/layers/test_layers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "tools/base/rng.h"

namespace pipelab {

void RandomData::FillFloats(int field, int64_t step, int64_t first_sample,
                            absl::Span<float> out) const {
  const CounterRng rng(/*seed=*/5, absl::StrCat(fields()[field].name, "/step", step));
  const int64_t offset = first_sample * fields()[field].size();
  for (size_t i = 0; i < out.size(); ++i) out[i] = rng.Normal(offset + i);
}

void RandomData::FillIds(int field, int64_t step, int64_t first_sample,
                         absl::Span<int32_t> out) const {
  const DataField& f = fields()[field];
  const bool next = f.name == kTargets;
  const CounterRng rng(/*seed=*/5, absl::StrCat(next ? kTokens : f.name, "/step", step));
  const uint64_t offset = static_cast<uint64_t>(first_sample * f.size()) + (next ? 1 : 0);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<int32_t>(rng.Below(offset + i, static_cast<uint64_t>(f.limit)));
  }
}

GptConfig SmallGpt(double dropout, bool tied) {
  GptConfig c;
  c.layers = 2;
  c.hidden = 16;
  c.heads = 2;
  c.tokens = 6;
  c.vocabulary = 11;
  c.dropout = dropout;
  c.tied_embeddings = tied;
  return c;
}

Tensor RandomTensor(Backend* backend, Shape shape, const std::string& name, float scale) {
  Tensor t = backend->Allocate(std::move(shape));
  const CounterRng rng(/*seed=*/7, name);
  for (int64_t i = 0; i < t.size(); ++i) t.f32()[i] = scale * rng.Normal(i);
  return t;
}

Shape RowsOf(const std::vector<int64_t>& sample_shape, int64_t samples) {
  Shape shape(sample_shape.begin(), sample_shape.end());
  shape[0] *= samples;
  return shape;
}

std::vector<Tensor> RandomInputs(const LayerSpec& spec, Backend* backend, int64_t samples) {
  std::vector<Tensor> inputs;
  for (const std::vector<int64_t>& shape : spec.input_shapes) {
    inputs.push_back(
        RandomTensor(backend, RowsOf(shape, samples), absl::StrCat("x", inputs.size()), 1));
  }
  return inputs;
}

LayerRig::LayerRig(const LayerSpec& layer_spec, Backend* backend, int64_t samples, bool training)
    : spec(layer_spec) {
  auto made = MakeLayer(spec);
  CHECK(made.ok()) << made.status();
  layer = *std::move(made);
  for (const ParameterSpec& p : spec.parameters) {
    const Shape shape(p.shape.begin(), p.shape.end());
    // Gammas around 1, everything else around 0; large enough that each matters for the output.
    Tensor value = RandomTensor(backend, shape, p.name, 0.3f);
    for (float& w : value.f32()) w += p.init == InitKind::kOnes ? 1.0f : 0.0f;
    Tensor gradient = backend->arena().Zeros(DataType::kFloat32, shape, MemoryKind::kGradient);
    parameters.push_back({value, gradient});
  }
  layer->SetParameters(parameters);
  ctx.backend = backend;
  ctx.step = 3;
  ctx.first_sample = 2;
  ctx.samples = samples;
  ctx.seed = 9;
  ctx.training = training;
  ctx.loss_scale = 0.125f;
  ctx.loss_sum = &loss;
  std::vector<DataField> fields = spec.data;
  const bool targets = std::any_of(fields.begin(), fields.end(),
                                   [](const DataField& f) { return f.name == kTargets; });
  if (!targets) fields.push_back({kTargets, FieldType::kId, {1}, 2});  // each source has some
  view = LoadData(spec, RandomData(fields), &backend->arena(), ctx.step, ctx.first_sample, samples);
  ctx.batch = &view;
}

}  // namespace pipelab
