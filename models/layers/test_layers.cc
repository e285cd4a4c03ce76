#include "models/layers/test_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "tools/base/rng.h"

namespace pipelab {

void RandomData::FillFloats(int field, int64_t step, int64_t first_sample,
                            absl::Span<float> out) const {
  const CounterRng rng(/*seed=*/5, absl::StrCat(fields()[field].name, "/step", step));
  const int64_t offset = first_sample * fields()[field].size();
  const bool targets = fields()[field].name == kTargets;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = targets ? rng.Uniform(offset + i) : rng.Normal(offset + i);
  }
}

void RandomData::FillIds(int field, int64_t step, int64_t first_sample,
                         absl::Span<int32_t> out) const {
  const DataField& f = fields()[field];
  const bool next = f.name == kTargets;
  const CounterRng rng(/*seed=*/5, absl::StrCat(next ? kTokens : f.name, "/step", step));
  const uint64_t offset = static_cast<uint64_t>(first_sample * f.size()) + (next ? 1 : 0);
  const CounterRng gaps(/*seed=*/5, absl::StrCat(f.name, "/gaps/step", step));
  const int32_t least = absl::EndsWith(f.name, "_length") ? 1 : 0;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] =
        least + static_cast<int32_t>(rng.Below(offset + i, static_cast<uint64_t>(f.limit - least)));
    if (f.padded && gaps.Below(offset + i, 3) == 0) out[i] = kNoData;
  }
}

std::vector<DataField> TestFieldsOf(const ModelGraph& graph) {
  std::vector<DataField> fields;
  for (const LayerSpec& layer : graph.layers) {
    for (const DataField& field : layer.data) {
      const auto same = std::find_if(fields.begin(), fields.end(),
                                     [&](const DataField& f) { return f.name == field.name; });
      if (same == fields.end()) {
        fields.push_back(field);
      } else {
        same->padded = same->padded && field.padded;
      }
    }
  }
  return fields;
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

Tensor RandomTensor(Backend* backend, Shape shape, const std::string& name, float scale,
                    const ParameterCut& cut) {
  Tensor t = backend->Allocate(std::move(shape));
  const CounterRng rng(/*seed=*/7, name);
  std::vector<float> values(t.size());
  for (int64_t i = 0; i < t.size(); ++i) values[i] = scale * rng.Normal(cut.WholeIndex(i));
  SetHostValues(t, values);
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
    Tensor value = RandomTensor(backend, shape, p.name, 0.3f, p.cut);
    std::vector<float> values = HostValues(value);
    for (float& w : values) w += p.init == InitKind::kOnes ? 1.0f : 0.0f;
    SetHostValues(value, values);
    Tensor gradient = backend->arena().Zeros(DataType::kFloat32, shape, MemoryKind::kGradient);
    parameters.push_back({value, gradient});
  }
  layer->SetParameters(parameters);
  std::vector<Tensor> statistics;
  for (const ParameterSpec& p : spec.statistics) {
    statistics.push_back(backend->arena().Zeros(
        DataType::kFloat32, Shape(p.shape.begin(), p.shape.end()), MemoryKind::kParameter));
    backend->Fill(statistics.back(), p.init == InitKind::kOnes ? 1.0f : 0.0f);
  }
  layer->SetStatistics(std::move(statistics));
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
