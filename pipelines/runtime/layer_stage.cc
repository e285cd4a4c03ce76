#include "pipelines/runtime/layer_stage.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "pipelines/runtime/layer_stage_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Span<const Tensor> Inputs(const Tensor& x) {
  return absl::MakeConstSpan(&x, x.empty() ? 0 : 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerStage>> LayerStage::Create(const ModelGraph& graph, int begin,
                                                               int end, Backend* backend,
                                                               const LayerStageOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckStageSizes(graph, begin, end, options));
  PIPELAB_RETURN_IF_ERROR(CheckStageChain(graph, begin, end));
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = begin; i < end; ++i) {
    PIPELAB_RETURN_IF_ERROR(CheckData(graph.layers[i], options.data));
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(graph.layers[i]));
    layers.push_back(std::move(layer));
  }
  std::unique_ptr<LayerStage> stage(new LayerStage(graph, begin, end, backend, options));
  for (int i = begin; i < end; ++i) layers[i - begin]->SetParameters(stage->parameters_.OfLayer(i));
  stage->layers_ = std::move(layers);
  return stage;
}

LayerStage::LayerStage(const ModelGraph& graph, int begin, int end, Backend* backend,
                       const LayerStageOptions& options)
    : backend_(backend),
      options_(options),
      begin_(begin),
      samples_(options.micro_batch_samples / options.group_size),
      specs_(graph.layers.begin() + begin, graph.layers.begin() + end),
      input_shape_(begin == 0 ? std::vector<int64_t>{} : graph.layers[begin - 1].output_shape),
      parameters_(graph, begin, end, backend, options.seed),
      versions_(options.version_uses) {}

Shape LayerStage::RowsOf(const std::vector<int64_t>& sample_shape) const {
  Shape shape(sample_shape.begin(), sample_shape.end());
  if (!shape.empty()) shape[0] *= samples_;
  return shape;
}

TensorSpec LayerStage::InputSpec(int, int) const {
  return {DataType::kFloat32, RowsOf(input_shape_)};
}

TensorSpec LayerStage::OutputSpec(int, int) const {
  return {DataType::kFloat32, RowsOf(specs_.back().output_shape)};
}

absl::Status LayerStage::CheckTensors(const Action& a, const char* what,
                                      const std::vector<Tensor>& tensors,
                                      const std::vector<int64_t>& sample_shape) const {
  const size_t expected = sample_shape.empty() ? 0 : 1;
  if (tensors.size() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(a), " takes ", expected, " ", what, ", not ", tensors.size()));
  }
  const Shape shape = RowsOf(sample_shape);
  for (const Tensor& t : tensors) {
    if (t.empty() || t.type() != DataType::kFloat32 || t.shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat(ToString(a), " takes ", what, " of ",
                                                     ShapeToString(shape), ", not ",
                                                     ShapeToString(t.shape())));
    }
  }
  return absl::OkStatus();
}

void LayerStage::Bind(int version) {
  const int kept = version == versions_.newest() ? kNewest : version;
  if (kept == bound_) return;  // synchronous: always
  bound_ = kept;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    layers_[i]->SetParameters(kept == kNewest ? parameters_.OfLayer(begin_ + i)
                                              : parameters_.OfLayer(begin_ + i, kept));
  }
}

void LayerStage::CountUse(int version) {
  if (!versions_.Use(version)) return;
  Bind(versions_.newest());  // layers must let go of it
  parameters_.DropVersion(version);
}

LayerContext LayerStage::ContextFor(int64_t step, int micro_batch) const {
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = step;
  ctx.first_sample = micro_batch * options_.micro_batch_samples + options_.member * samples_;
  ctx.samples = samples_;
  ctx.seed = options_.seed;
  ctx.loss_scale = 1.0f / static_cast<float>(options_.batch_tokens);
  return ctx;
}

BatchView LayerStage::DataOf(int layer, const BatchSource* data, const LayerContext& ctx) const {
  if (data == nullptr) return BatchView();  // then no layer reads any: Create checked
  return LoadData(specs_[layer], *data, &backend_->arena(), ctx.step, ctx.first_sample,
                  ctx.samples);
}

Tensor LayerStage::RunForward(LayerContext ctx, const BatchSource* data, bool drop,
                              MicroBatch* mb) {
  Tensor x = mb->inputs[0];
  for (size_t i = 0; i < layers_.size(); ++i) {
    const BatchView view = DataOf(static_cast<int>(i), data, ctx);
    ctx.batch = &view;
    LayerStash stash;
    Tensor y = layers_[i]->Forward(ctx, Inputs(x), &stash);
    if (!drop) {
      mb->inputs[i] = std::move(x);
      mb->stashes[i] = std::move(stash);
    }
    x = std::move(y);
  }
  return x;
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Forward(const Action& a, std::vector<Tensor> inputs,
                                                        bool drop) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kForward}));
  PIPELAB_RETURN_IF_ERROR(versions_.CheckUse(a));
  PIPELAB_RETURN_IF_ERROR(CheckTensors(a, "inputs", inputs, input_shape_));
  if (in_flight_.count(a.micro_batch) > 0) {
    return Refuse(a, "comes again before the backward of its micro-batch");
  }
  MicroBatch& mb = in_flight_[a.micro_batch];
  mb.phase = drop ? Phase::kDropped : Phase::kReady;
  mb.step = training_step_;
  mb.version = a.version;
  mb.inputs.resize(layers_.size());
  mb.stashes.resize(layers_.size());
  if (!inputs.empty()) mb.inputs[0] = std::move(inputs[0]);
  LayerContext ctx = ContextFor(mb.step, a.micro_batch);
  double loss = 0;
  ctx.loss_sum = &loss;
  Bind(a.version);
  Tensor y = RunForward(ctx, options_.data, drop, &mb);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  std::vector<Tensor> outputs;
  if (y.empty()) {
    losses_[a.micro_batch] = loss;
  } else {
    outputs.push_back(std::move(y));
  }
  return outputs;
}

absl::StatusOr<LayerStage::MicroBatch*> LayerStage::Find(const Action& a, Phase phase) {
  const auto it = in_flight_.find(a.micro_batch);
  if (it == in_flight_.end()) return Refuse(a, "has no forward before it");
  if (it->second.version != a.version) {
    return Refuse(a, absl::StrCat("is not of its forward's weight version ", it->second.version));
  }
  PIPELAB_RETURN_IF_ERROR(versions_.CheckUse(a));
  const Phase found = it->second.phase;
  if (found == phase) return &it->second;
  switch (found) {
    case Phase::kDropped:
      return Refuse(a, "needs a recompute first: the forward kept its inputs only");
    case Phase::kReady:
      return Refuse(a, phase == Phase::kDropped ? "finds activations that were not dropped"
                                                : "comes before the input gradient (I)");
    case Phase::kInputDone:
      return Refuse(a, "comes after the input gradient (I): only the weight gradient (W) is left");
  }
  return Refuse(a, "finds its micro-batch in no known phase");
}

absl::Status LayerStage::Recompute(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kRecompute}));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kDropped));
  LayerContext ctx = ContextFor(mb->step, a.micro_batch);
  double loss_again = 0;  // counted by the forward already
  ctx.loss_sum = &loss_again;
  Bind(a.version);
  RunForward(ctx, options_.data, /*drop=*/false, mb);
  mb->phase = Phase::kReady;
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  return absl::OkStatus();
}

Tensor LayerStage::BackwardLayer(int layer, ActionKind kind, LayerContext ctx, Tensor dy,
                                 MicroBatch* mb) {
  const BatchView view = DataOf(layer, options_.data, ctx);
  ctx.batch = &view;
  Tensor& x = mb->inputs[layer];
  LayerStash* stash = &mb->stashes[layer];
  Tensor dx;
  if (kind != ActionKind::kBackwardWeight) {
    std::vector<Tensor> gradients =
        layers_[layer]->BackwardInput(ctx, Inputs(x), std::move(dy), stash);
    if (!gradients.empty()) dx = std::move(gradients[0]);
  }
  if (kind != ActionKind::kBackwardInput) {
    layers_[layer]->BackwardWeight(ctx, Inputs(x), stash);
    x = Tensor();
  }
  return dx;
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Backward(const Action& a,
                                                         std::vector<Tensor> output_gradients) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kBackward, ActionKind::kBackwardInput}));
  PIPELAB_RETURN_IF_ERROR(
      CheckTensors(a, "output gradients", output_gradients, specs_.back().output_shape));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kReady));
  const LayerContext ctx = ContextFor(mb->step, a.micro_batch);
  Bind(a.version);
  Tensor gradient;
  if (!output_gradients.empty()) gradient = std::move(output_gradients[0]);
  for (int i = static_cast<int>(layers_.size()) - 1; i >= 0; --i) {
    gradient = BackwardLayer(i, a.kind, ctx, std::move(gradient), mb);
  }
  if (a.kind == ActionKind::kBackward) {
    parameters_.GradientsAdded();
    in_flight_.erase(a.micro_batch);
  } else {
    mb->phase = Phase::kInputDone;
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  std::vector<Tensor> input_gradients;
  if (!gradient.empty()) input_gradients.push_back(std::move(gradient));
  return input_gradients;
}

absl::Status LayerStage::BackwardWeight(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kBackwardWeight}));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kInputDone));
  const LayerContext ctx = ContextFor(mb->step, a.micro_batch);
  Bind(a.version);
  for (int i = static_cast<int>(layers_.size()) - 1; i >= 0; --i) {
    BackwardLayer(i, a.kind, ctx, Tensor(), mb);
  }
  parameters_.GradientsAdded();
  in_flight_.erase(a.micro_batch);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  return absl::OkStatus();
}

absl::Status LayerStage::Step(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kStep}));
  const bool last = versions_.is_last_step();
  if (last && !in_flight_.empty()) {
    return Refuse(a, absl::StrCat("ends the training step while micro-batch ",
                                  in_flight_.begin()->first, " is in flight"));
  }
  PIPELAB_RETURN_IF_ERROR(versions_.CheckStep(a));
  if (versions_.newest_is_needed()) parameters_.KeepVersion(versions_.newest());
  AdamOptions adam = options_.adam;
  adam.step = training_step_ * versions_.steps_of_run() + versions_.newest() + 1;
  parameters_.Step(adam);
  versions_.Made();
  training_step_ += last;
  return backend_->Finish();
}

absl::Status LayerStage::SetTrainingStep(int64_t step) {
  if (!in_flight_.empty() || versions_.newest() != 0) {
    return absl::FailedPreconditionError("the training step is set between steps, not in one");
  }
  if (step < 0) return absl::InvalidArgumentError(absl::StrCat("training step ", step));
  training_step_ = step;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Evaluate(const BatchSource& data, int64_t step,
                                                         int64_t first_sample, int64_t samples,
                                                         std::vector<Tensor> inputs,
                                                         double* loss_sum) {
  if (inputs.size() != (input_shape_.empty() ? 0 : 1)) {
    return absl::InvalidArgumentError(absl::StrCat("evaluation got ", inputs.size(), " inputs"));
  }
  for (const LayerSpec& spec : specs_) PIPELAB_RETURN_IF_ERROR(CheckData(spec, &data));
  LayerContext ctx = ContextFor(step, 0);
  ctx.first_sample = first_sample;
  ctx.samples = samples;
  ctx.training = false;
  ctx.loss_sum = loss_sum;
  Bind(versions_.newest());
  MicroBatch mb;
  mb.inputs.resize(1);
  if (!inputs.empty()) mb.inputs[0] = std::move(inputs[0]);
  Tensor y = RunForward(ctx, &data, /*drop=*/true, &mb);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  std::vector<Tensor> outputs;
  if (!y.empty()) outputs.push_back(std::move(y));
  return outputs;
}

}  // namespace pipelab
