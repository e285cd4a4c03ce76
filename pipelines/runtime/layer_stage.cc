#include "pipelines/runtime/layer_stage.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "pipelines/runtime/layer_stage_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
absl::StatusOr<std::unique_ptr<LayerStage>> LayerStage::Create(const ModelGraph& graph,
                                                               const ModelPartition& partition,
                                                               int stage, Backend* backend,
                                                               const LayerStageOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckStageSizes(partition, stage, options));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<TokenSlice> slices, SlicesOf(graph, options));
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i : partition.layers[stage]) {
    PIPELAB_RETURN_IF_ERROR(CheckData(graph.layers[i], options.data));
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(graph.layers[i]));
    layers.push_back(std::move(layer));
  }
  std::unique_ptr<LayerStage> made(new LayerStage(graph, partition, stage, backend, options));
  for (size_t place = 0; place < layers.size(); ++place) {
    const int layer = made->plan_.layers[place];
    layers[place]->SetParameters(made->parameters_.OfLayer(layer));
    layers[place]->SetStatistics(made->statistics_.OfLayer(layer));
  }
  made->layers_ = std::move(layers);
  made->slices_ = std::move(slices);
  return made;
}

absl::StatusOr<std::unique_ptr<LayerStage>> LayerStage::Create(const ModelGraph& graph, int begin,
                                                               int end, Backend* backend,
                                                               const LayerStageOptions& options) {
  int stage = 0;
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakeStageOfRange(graph, begin, end, &stage));
  return Create(graph, partition, stage, backend, options);
}

LayerStage::LayerStage(const ModelGraph& graph, const ModelPartition& partition, int stage,
                       Backend* backend, const LayerStageOptions& options)
    : backend_(backend),
      options_(options),
      plan_(MakeStagePlan(graph, partition, stage)),
      samples_(options.micro_batch_samples / options.group_size),
      has_loss_(partition.loss_stage == stage),
      parameters_(graph, plan_.layers, backend, options.seed, options.shard),
      statistics_(graph, plan_.layers, backend),
      versions_(options.version_uses) {
  for (int layer : plan_.layers) specs_.push_back(graph.layers[layer]);
  const auto edge = [&](int value) {
    const LayerSpec& layer = graph.layers[plan_.values[value].layer];
    return EdgeShape{layer.name, layer.output_shape};
  };
  for (int value = 0; value < plan_.num_in_edges; ++value) in_edges_.push_back(edge(value));
  for (int value : plan_.out_values) out_edges_.push_back(edge(value));
}

Shape LayerStage::RowsOf(const std::vector<int64_t>& sample_shape, int slice) const {
  Shape shape(sample_shape.begin(), sample_shape.end());
  shape[0] = samples_ * slices_[slice].CountOf(shape[0]);
  return shape;
}

TensorSpec LayerStage::InputSpec(int in_edge, int slice) const {
  return {DataType::kFloat32, RowsOf(in_edges_.at(in_edge).shape, slice)};
}

TensorSpec LayerStage::OutputSpec(int out_edge, int slice) const {
  return {DataType::kFloat32, RowsOf(out_edges_.at(out_edge).shape, slice)};
}

absl::Status LayerStage::CheckTensors(const Action& a, const char* what,
                                      const std::vector<Tensor>& tensors,
                                      const std::vector<EdgeShape>& edges) const {
  if (tensors.size() != edges.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(a), " takes ", edges.size(), " ", what, ", not ", tensors.size()));
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    const Shape shape = RowsOf(edges[e].shape, a.slice);
    const Tensor& t = tensors[e];
    if (!t.empty() && t.type() == DataType::kFloat32 && t.shape() == shape) continue;
    return absl::InvalidArgumentError(absl::StrCat(ToString(a), " takes ", what, " of ",
                                                   ShapeToString(shape), " for \"", edges[e].layer,
                                                   "\", not ", ShapeToString(t.shape())));
  }
  return absl::OkStatus();
}

void LayerStage::Bind(int version) {
  const int kept = version == versions_.newest() ? kNewest : version;
  if (kept == bound_) return;  // synchronous: always
  bound_ = kept;
  BindAgain();
}

void LayerStage::BindAgain() {
  for (size_t place = 0; place < layers_.size(); ++place) {
    const int layer = plan_.layers[place];
    layers_[place]->SetParameters(bound_ == kNewest ? parameters_.OfLayer(layer)
                                                    : parameters_.OfLayer(layer, bound_));
  }
}

void LayerStage::CountUse(int version) {
  if (!versions_.Use(version)) return;
  Bind(versions_.newest());  // layers must let go of it
  parameters_.DropVersion(version);
}

LayerContext LayerStage::ContextFor(int64_t step, const Action& a) const {
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = step;
  ctx.first_sample = a.micro_batch * options_.micro_batch_samples + options_.member * samples_;
  ctx.samples = samples_;
  ctx.slice = slices_[a.slice];
  ctx.seed = options_.seed;
  ctx.loss_scale = 1.0f / static_cast<float>(options_.batch_tokens);
  return ctx;
}

BatchView LayerStage::DataOf(int place, const BatchSource* data, const LayerContext& ctx) const {
  if (data == nullptr) return BatchView();  // then no layer reads any: Create checked
  return LoadData(specs_[place], *data, &backend_->arena(), ctx.step, ctx.first_sample, ctx.samples,
                  ctx.slice);
}

std::vector<Tensor> LayerStage::InputsOf(int place, const MicroBatch& mb) const {
  std::vector<Tensor> inputs;
  for (int value : plan_.inputs[place]) inputs.push_back(mb.values[value]);
  return inputs;
}

void LayerStage::Release(StagePass pass, int place, MicroBatch* mb) const {
  for (int value : plan_.released(pass)[place]) mb->values[value] = Tensor();
}

std::vector<Tensor> LayerStage::RunForward(LayerContext ctx, const BatchSource* data,
                                           StagePass pass, std::vector<LayerStash>* sequences,
                                           MicroBatch* mb) {
  const bool drop = pass == StagePass::kForwardDrop;
  for (int place = 0; place < static_cast<int>(layers_.size()); ++place) {
    const BatchView view = DataOf(place, data, ctx);
    ctx.batch = &view;
    ctx.sequence = sequences == nullptr ? nullptr : &(*sequences)[place];
    LayerStash stash;
    mb->values[plan_.output(place)] = layers_[place]->Forward(ctx, InputsOf(place, *mb), &stash);
    if (!drop) mb->stashes[place] = std::move(stash);
    Release(pass, place, mb);
  }
  std::vector<Tensor> outputs;
  if (pass == StagePass::kRecompute) return outputs;
  for (int edge = 0; edge < static_cast<int>(plan_.out_values.size()); ++edge) {
    const StagePlan::Value& plan = plan_.values[plan_.out_values[edge]];
    Tensor& value = mb->values[plan_.out_values[edge]];
    const bool last = edge == plan.out_edges.back();
    if (last && (drop || !plan.kept())) {
      outputs.push_back(std::move(value));
    } else {
      outputs.push_back(backend_->Allocate(value.shape()));
      backend_->Copy(value, outputs.back());
    }
  }
  return outputs;
}

std::vector<LayerStash>* LayerStage::SequencesOf(const Action& a) {
  if (slices_.size() == 1) return nullptr;
  std::vector<LayerStash>& sequences = sequences_[a.micro_batch];
  sequences.resize(layers_.size());
  return &sequences;
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Forward(const Action& a, std::vector<Tensor> inputs,
                                                        bool drop) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kForward}, slices_.size()));
  PIPELAB_RETURN_IF_ERROR(versions_.CheckUse(a));
  PIPELAB_RETURN_IF_ERROR(CheckTensors(a, "inputs", inputs, in_edges_));
  PIPELAB_RETURN_IF_ERROR(CheckGathered(a));
  if (in_flight_.count({a.micro_batch, a.slice}) > 0) {
    return Refuse(a, "comes again before the backward of its micro-batch");
  }
  if (a.slice > 0 && in_flight_.count({a.micro_batch, a.slice - 1}) == 0) {
    return Refuse(a, "comes before the slice of its micro-batch that it attends to");
  }
  MicroBatch& mb = in_flight_[{a.micro_batch, a.slice}];
  mb.phase = drop ? Phase::kDropped : Phase::kReady;
  mb.step = training_step_;
  mb.version = a.version;
  mb.values = std::move(inputs);
  mb.values.resize(plan_.values.size());
  mb.stashes.resize(layers_.size());
  LayerContext ctx = ContextFor(mb.step, a);
  double loss = 0;
  ctx.loss_sum = &loss;
  Bind(a.version);
  std::vector<Tensor> outputs =
      RunForward(ctx, options_.data, drop ? StagePass::kForwardDrop : StagePass::kForward,
                 SequencesOf(a), &mb);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  if (has_loss_ && a.slice == 0) losses_[a.micro_batch] = 0;
  if (has_loss_) losses_[a.micro_batch] += loss;
  return outputs;
}

absl::StatusOr<LayerStage::MicroBatch*> LayerStage::Find(const Action& a, Phase phase) {
  const auto it = in_flight_.find({a.micro_batch, a.slice});
  if (it == in_flight_.end()) return Refuse(a, "has no forward before it");
  if (it->second.version != a.version) {
    return Refuse(a, absl::StrCat("is not of its forward's weight version ", it->second.version));
  }
  PIPELAB_RETURN_IF_ERROR(versions_.CheckUse(a));
  PIPELAB_RETURN_IF_ERROR(CheckGathered(a));
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
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kRecompute}, slices_.size()));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kDropped));
  LayerContext ctx = ContextFor(mb->step, a);
  double loss_again = 0;  // counted by the forward already
  ctx.loss_sum = &loss_again;
  Bind(a.version);
  RunForward(ctx, options_.data, StagePass::kRecompute, SequencesOf(a), mb);
  mb->phase = Phase::kReady;
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  return absl::OkStatus();
}

void LayerStage::AddTo(Tensor* sum, Tensor share) const {
  if (sum->empty()) {
    *sum = std::move(share);
  } else {
    backend_->Add(*sum, share, *sum);
  }
}

void LayerStage::BackwardLayer(int place, StagePass pass, LayerContext ctx, MicroBatch* mb,
                               std::vector<Tensor>* gradients) {
  const BatchView view = DataOf(place, options_.data, ctx);
  ctx.batch = &view;
  std::vector<Tensor> inputs = InputsOf(place, *mb), shares;
  LayerStash* stash = &mb->stashes[place];
  if (pass != StagePass::kBackwardWeight) {
    shares = layers_[place]->BackwardInput(ctx, inputs,
                                           std::move((*gradients)[plan_.output(place)]), stash);
  }
  if (pass != StagePass::kBackwardInput) layers_[place]->BackwardWeight(ctx, inputs, stash);
  inputs.clear();
  for (size_t k = 0; k < shares.size(); ++k) {
    AddTo(&(*gradients)[plan_.inputs[place][k]], std::move(shares[k]));
  }
  Release(pass, place, mb);
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Backward(const Action& a,
                                                         std::vector<Tensor> output_gradients) {
  PIPELAB_RETURN_IF_ERROR(
      CheckAction(a, {ActionKind::kBackward, ActionKind::kBackwardInput}, slices_.size()));
  PIPELAB_RETURN_IF_ERROR(CheckTensors(a, "output gradients", output_gradients, out_edges_));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kReady));
  const auto later = in_flight_.find({a.micro_batch, a.slice + 1});
  if (later != in_flight_.end() && later->second.phase != Phase::kInputDone) {
    return Refuse(a, "comes before the backward of the next slice, which has gradients for it");
  }
  const LayerContext ctx = ContextFor(mb->step, a);
  std::vector<LayerStash>* sequences = SequencesOf(a);
  Bind(a.version);
  if (a.kind == ActionKind::kBackward) PrepareGradients();
  std::vector<Tensor> gradients(plan_.values.size());
  for (int edge = static_cast<int>(plan_.out_values.size()) - 1; edge >= 0; --edge) {
    AddTo(&gradients[plan_.out_values[edge]], std::move(output_gradients[edge]));
  }
  const bool fused = a.kind == ActionKind::kBackward;
  const StagePass pass = fused ? StagePass::kBackward : StagePass::kBackwardInput;
  for (int place = static_cast<int>(layers_.size()) - 1; place >= 0; --place) {
    LayerContext layer_ctx = ctx;
    layer_ctx.sequence = sequences == nullptr ? nullptr : &(*sequences)[place];
    BackwardLayer(place, pass, layer_ctx, mb, &gradients);
  }
  if (a.slice == 0) sequences_.erase(a.micro_batch);
  if (fused) {
    Finished(a);
  } else {
    mb->phase = Phase::kInputDone;
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  gradients.resize(plan_.num_in_edges);
  return gradients;
}

void LayerStage::Finished(const Action& a) {
  parameters_.GradientsAdded();
  in_flight_.erase({a.micro_batch, a.slice});
}

absl::Status LayerStage::BackwardWeight(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kBackwardWeight}, slices_.size()));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kInputDone));
  const LayerContext ctx = ContextFor(mb->step, a);
  Bind(a.version);
  PrepareGradients();
  for (int place = static_cast<int>(layers_.size()) - 1; place >= 0; --place) {
    BackwardLayer(place, StagePass::kBackwardWeight, ctx, mb, nullptr);
  }
  Finished(a);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  CountUse(a.version);
  return absl::OkStatus();
}

absl::Status LayerStage::Step(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(CheckAction(a, {ActionKind::kStep}, 1));
  const bool last = versions_.is_last_step();
  if (last && !in_flight_.empty()) {
    return Refuse(a, absl::StrCat("ends the training step while micro-batch ",
                                  in_flight_.begin()->first.first, " is in flight"));
  }
  PIPELAB_RETURN_IF_ERROR(versions_.CheckStep(a));
  if (versions_.newest_is_needed()) parameters_.KeepVersion(versions_.newest());
  AdamOptions adam = options_.adam;
  adam.step = training_step_ * versions_.steps_of_run() + versions_.newest() + 1;
  parameters_.Step(adam);
  for (const auto& layer : layers_) layer->EndStep(backend_);
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
  if (static_cast<int>(inputs.size()) != plan_.num_in_edges) {
    return absl::InvalidArgumentError(absl::StrCat("evaluation got ", inputs.size(), " inputs"));
  }
  for (const LayerSpec& spec : specs_) PIPELAB_RETURN_IF_ERROR(CheckData(spec, &data));
  PIPELAB_RETURN_IF_ERROR(CheckGathered(Action()));
  LayerContext ctx = ContextFor(step, Action());
  ctx.first_sample = first_sample;
  ctx.samples = samples;
  ctx.slice = TokenSlice();
  ctx.training = false;
  ctx.loss_sum = loss_sum;
  Bind(versions_.newest());
  MicroBatch mb;
  mb.values = std::move(inputs);
  mb.values.resize(plan_.values.size());
  std::vector<Tensor> outputs = RunForward(ctx, &data, StagePass::kForwardDrop, nullptr, &mb);
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return outputs;
}

}  // namespace pipelab
