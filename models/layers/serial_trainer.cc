#include "models/layers/serial_trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "models/layers/initialize.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::unique_ptr<SerialTrainer>> SerialTrainer::Create(ModelGraph graph,
                                                                     Backend* backend,
                                                                     const SerialOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  if (options.micro_batch_samples < 1 || options.num_micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("serial training needs samples and micro-batches, not ",
                     options.micro_batch_samples, " and ", options.num_micro_batches));
  }
  const std::vector<int>& sums = options.sum_of_micro_batch;
  if (!sums.empty() && (static_cast<int>(sums.size()) != options.num_micro_batches ||
                        *std::min_element(sums.begin(), sums.end()) < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("serial training of ", options.num_micro_batches,
                                                   " micro-batches needs as many ",
                                                   "partial sums, from 0 on, not ", sums.size()));
  }
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const LayerSpec& layer = graph.layers[i];
    PIPELAB_RETURN_IF_ERROR(CheckData(layer, options.data));
    if (layer.inputs != (i == 0 ? std::vector<int>{} : std::vector<int>{i - 1})) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer \"", layer.name, "\": serial training takes a chain of layers"));
    }
  }
  auto trainer =
      std::unique_ptr<SerialTrainer>(new SerialTrainer(std::move(graph), backend, options));
  PIPELAB_RETURN_IF_ERROR(trainer->MakeLayers());
  return trainer;
}

SerialTrainer::SerialTrainer(ModelGraph graph, Backend* backend, const SerialOptions& options)
    : graph_(std::move(graph)), backend_(backend), options_(options) {}

Tensor SerialTrainer::NewState(const ParameterSpec& spec, MemoryKind kind) {
  return backend_->arena().Zeros(DataType::kFloat32, Shape(spec.shape.begin(), spec.shape.end()),
                                 kind);
}

absl::Status SerialTrainer::MakeLayers() {
  const std::vector<int>& sums = options_.sum_of_micro_batch;
  parameters_.resize(sums.empty() ? 1 : 1 + *std::max_element(sums.begin(), sums.end()));
  for (const LayerSpec& spec : graph_.layers) {
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(spec));
    for (auto& of_layer : parameters_) of_layer.emplace_back();
    for (const ParameterSpec& p : spec.parameters) {
      Value& v = values_[ValueName(p)];
      if (v.value.empty()) {
        v.value = NewState(p, MemoryKind::kParameter);
        v.m = NewState(p, MemoryKind::kOptimizer);
        v.v = NewState(p, MemoryKind::kOptimizer);
        InitializeParameter(p, options_.seed, v.value.f32());
      }
      for (auto& of_layer : parameters_) {
        v.gradients.push_back(NewState(p, MemoryKind::kGradient));
        of_layer.back().push_back({v.value, v.gradients.back()});
      }
    }
    layer->SetParameters(parameters_[0].back());
    layers_.push_back(std::move(layer));
  }
  return absl::OkStatus();
}

LayerContext SerialTrainer::ContextFor(int64_t step, int64_t first_sample, int64_t samples) const {
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = step;
  ctx.first_sample = first_sample;
  ctx.samples = samples;
  ctx.seed = options_.seed;
  return ctx;
}

void SerialTrainer::MicroBatch(int micro_batch) {
  const int64_t samples = options_.micro_batch_samples, first = micro_batch * samples;
  const int n = static_cast<int>(layers_.size());
  LayerContext ctx = ContextFor(step_, first, samples);
  ctx.loss_scale = 1.0f / static_cast<float>(options_.num_micro_batches * samples *
                                             options_.data->tokens_per_sample());
  ctx.loss_sum = &losses_[micro_batch];
  auto load = [&](int i) {
    return LoadData(graph_.layers[i], *options_.data, &backend_->arena(), step_, first, samples);
  };
  if (parameters_.size() > 1) {
    const auto& parameters = parameters_[options_.sum_of_micro_batch[micro_batch]];
    for (int i = 0; i < n; ++i) layers_[i]->SetParameters(parameters[i]);
  }
  std::vector<Tensor> inputs(n + 1);
  std::vector<LayerStash> stashes(n);
  for (int i = 0; i < n; ++i) {
    const BatchView view = load(i);
    ctx.batch = &view;
    inputs[i + 1] = layers_[i]->Forward(ctx, inputs[i], &stashes[i]);
  }
  Tensor gradient;
  inputs.pop_back();  // the loss has no output
  for (int i = n - 1; i >= 0; --i) {
    const BatchView view = load(i);
    ctx.batch = &view;
    gradient = layers_[i]->BackwardInput(ctx, inputs[i], std::move(gradient), &stashes[i]);
    layers_[i]->BackwardWeight(ctx, inputs[i], &stashes[i]);
    inputs.pop_back();
  }
}

absl::StatusOr<double> SerialTrainer::Step() {
  losses_.assign(options_.num_micro_batches, 0);
  for (int i = 0; i < options_.num_micro_batches; ++i) MicroBatch(i);
  AdamOptions adam = options_.adam;
  adam.step = ++step_;
  for (auto& [name, v] : values_) {
    for (size_t i = 1; i < v.gradients.size(); ++i) {
      backend_->Add(v.gradients[0], v.gradients[i], v.gradients[0]);
    }
    backend_->Adam(adam, v.value, v.gradients[0], v.m, v.v);
    for (const Tensor& g : v.gradients) backend_->Fill(g, 0);
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  double sum = 0;
  for (double loss : losses_) sum += loss;
  return sum / static_cast<double>(options_.num_micro_batches * options_.micro_batch_samples *
                                   options_.data->tokens_per_sample());
}

absl::StatusOr<double> SerialTrainer::Evaluate(const BatchSource& data, int64_t step,
                                               int64_t first_sample, int64_t samples) {
  double loss = 0;
  LayerContext ctx = ContextFor(step, first_sample, samples);
  ctx.training = false;
  ctx.loss_sum = &loss;
  Tensor x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    PIPELAB_RETURN_IF_ERROR(CheckData(graph_.layers[i], &data));
    const BatchView view =
        LoadData(graph_.layers[i], data, &backend_->arena(), step, first_sample, samples);
    ctx.batch = &view;
    LayerStash stash;
    x = layers_[i]->Forward(ctx, x, &stash);
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return loss / static_cast<double>(samples * data.tokens_per_sample());
}

absl::StatusOr<std::vector<float>> SerialTrainer::ParameterValue(const std::string& name) const {
  for (const LayerSpec& layer : graph_.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.name != name) continue;
      const auto value = values_.at(ValueName(p)).value.f32();
      return std::vector<float>(value.begin(), value.end());
    }
  }
  return absl::NotFoundError(absl::StrCat("the model has no parameter \"", name, "\""));
}

}  // namespace pipelab
