#include "pipelines/runtime/layer_stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "models/specs/token_cache.h"
#include "pipelines/runtime/layer_stage_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

int PlaceOf(const StagePlan& plan, int layer) {
  return static_cast<int>(std::find(plan.layers.begin(), plan.layers.end(), layer) -
                          plan.layers.begin());
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerStage>> LayerStage::Create(const ModelGraph& graph,
                                                               const ModelPartition& partition,
                                                               int stage, Backend* backend,
                                                               const LayerStageOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckStageSizes(partition, stage, options));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<TokenSlice> slices, SlicesOf(graph, options));
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i : partition.layers[stage]) {
    if (options.cached) {
      PIPELAB_RETURN_IF_ERROR(CacheNumbers(graph.layers[i]).status());
    } else {
      PIPELAB_RETURN_IF_ERROR(CheckData(graph.layers[i], options.data));
    }
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
      samples_(options.micro_batch_size / options.data_parallel_size),
      loss_place_(partition.loss_stage == stage ? PlaceOf(plan_, LossLayer(graph)) : -1),
      parameters_(graph, plan_.layers, options.optimizer, backend, options.seed, options.shard,
                  /*values_only=*/options.forward_only),
      statistics_(graph, plan_.layers, backend),
      versions_(options.version_uses) {
  for (int layer : plan_.layers) specs_.push_back(graph.layers[layer]);
  const auto edge = [&](int value) {
    const LayerSpec& layer = graph.layers[plan_.values[value].layer];
    return EdgeShape{layer.name, layer.output_shape};
  };
  for (int value = 0; value < plan_.num_in_edges; ++value) in_edges_.push_back(edge(value));
  for (int value : plan_.out_values) out_edges_.push_back(edge(value));
  for (int e : partition.stages.out_edges[stage]) {
    takes_gradient_.push_back(!partition.stages.edges[e].gradient.none());
  }
}

Shape LayerStage::RowsOf(const std::vector<int64_t>& sample_shape, int slice) const {
  Shape shape(sample_shape.begin(), sample_shape.end());
  shape[0] = samples_ * slices_[slice].CountOf(shape[0], specs_[0].rows.parts);
  return shape;
}

TensorSpec LayerStage::InputSpec(int in_edge, int slice) const {
  return {backend_->activation_type(), RowsOf(in_edges_.at(in_edge).shape, slice)};
}

TensorSpec LayerStage::OutputSpec(int out_edge, int slice) const {
  return {backend_->activation_type(), RowsOf(out_edges_.at(out_edge).shape, slice)};
}

absl::Status LayerStage::CheckTensors(const Action& a, const char* what,
                                      const std::vector<Tensor>& tensors,
                                      const std::vector<EdgeShape>& edges,
                                      const std::vector<bool>& expected) const {
  if (tensors.size() != edges.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(a), " takes ", edges.size(), " ", what, ", not ", tensors.size()));
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    if (!expected.empty() && !expected[e]) continue;
    const Shape shape = RowsOf(edges[e].shape, a.slice);
    const Tensor& t = tensors[e];
    if (!t.empty() && t.type() == backend_->activation_type() && t.shape() == shape) continue;
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
  const std::vector<int32_t>& samples = options_.sample_of_pass;
  const int micro_batch = samples.empty() ? a.micro_batch : samples[a.micro_batch];
  ctx.first_sample = micro_batch * options_.micro_batch_size + options_.member * samples_;
  ctx.samples = samples_;
  ctx.slice = slices_[a.slice];
  ctx.seed = options_.seed;
  ctx.loss_scale = 1.0f / static_cast<float>(options_.batch_tokens);
  ctx.training = !options_.forward_only;
  ctx.peers = options_.peers;
  ctx.copies = options_.copies;
  ctx.context = options_.context;
  ctx.experts = options_.experts;
  return ctx;
}

LayerContext LayerStage::ContextOfPass(int64_t step, const Action& a) const {
  LayerContext ctx = ContextFor(step, a);
  if (options_.exchange != nullptr) ctx.exchange = options_.exchange->Of(a);
  return ctx;
}

BatchView LayerStage::DataOf(int place, const BatchSource* data, const LayerContext& ctx) const {
  if (ctx.cached != nullptr) return CachedData(specs_[place], *ctx.cached, &backend_->arena());
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

absl::Status LayerStage::FinishWork() const {
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  for (const TensorPeers* peers :
       {options_.peers, options_.copies, options_.context, options_.experts}) {
    if (peers != nullptr) PIPELAB_RETURN_IF_ERROR(peers->status());
  }
  return options_.exchange == nullptr ? absl::OkStatus() : options_.exchange->status();
}

void LayerStage::SumOverRows() {
  if (rows_summed_ || specs_[0].rows.parts == 1) return;  // one layer does as all do
  for (const Tensor& gradient : parameters_.GradientsOfUndivided()) options_.peers->Sum(gradient);
  rows_summed_ = true;
}

// One peer adds the squares of the parameters that all peers have.
absl::StatusOr<Tensor> LayerStage::BeginNorm(const NormShare& share) {
  SumOverRows();
  TensorPeers* peers = options_.peers;
  Tensor squares = parameters_.SumsOfSquares(share, peers == nullptr || peers->member() == 0);
  if (peers != nullptr) peers->Sum(squares);
  PIPELAB_RETURN_IF_ERROR(FinishWork());
  return squares;
}

// In double and in the order of values, as the serial loop adds them.
absl::Status LayerStage::EndNorm(const Tensor& squares) {
  squares_ = 0;
  for (float term : HostValues(squares)) *squares_ += term;
  gradient_norm_ = std::sqrt(*squares_);
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
  if (options_.optimizer.needs_norm() && !squares_.has_value()) {
    return Refuse(a, "comes before the global norm of the gradients is known");
  }
  SumOverRows();
  if (versions_.newest_is_needed()) parameters_.KeepVersion(versions_.newest());
  if (options_.optimizer.needs_norm()) {
    const float factor = ClipFactorOf(options_.optimizer, *squares_);
    if (factor != 1) parameters_.ScaleGradients(factor);
  }
  squares_.reset();
  rows_summed_ = false;
  parameters_.Step(training_step_ * versions_.steps_of_run() + versions_.newest() + 1);
  if (options_.shard.travels) BindAgain();  // the gradients are gone
  for (const auto& layer : layers_) layer->EndStep(backend_);
  versions_.Made();
  training_step_ += last;
  return FinishWork();
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
  PIPELAB_RETURN_IF_ERROR(FinishWork());
  return outputs;
}

}  // namespace pipelab
