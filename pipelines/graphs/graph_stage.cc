#include "pipelines/graphs/graph_stage.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/factory.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::vector<Tensor>> PreparationModule::Forward(const Action& a,
                                                               std::vector<Tensor> inputs, bool) {
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(a), " takes one tensor"));
  }
  PIPELAB_ASSIGN_OR_RETURN(Tensor out, Prepare(a.micro_batch, std::move(inputs[0])));
  return std::vector<Tensor>{std::move(out)};
}

void SplitMembership::Put(int batch, std::vector<RowShuffle> shuffles) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shuffles_[batch] = std::move(shuffles);
}

std::vector<RowShuffle> SplitMembership::Take(int batch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::move(shuffles_.extract(batch).mapped());
}

void SampleStage::SplitWith(SplitMembership* membership, TensorPeers* group) {
  membership_ = membership;
  group_ = group;
  const GraphBatchOptions& options = batches_->options();
  split_sampler_ =
      std::make_unique<SplitMember>(&batches_->data().graph, membership->owners, membership->member,
                                    membership->members, options.fanouts, options.seed);
}

absl::StatusOr<Tensor> SampleStage::Prepare(int batch, Tensor) {
  const int64_t step = *first_step_ + batch;
  Tensor out = Room(arena_);
  if (membership_ != nullptr) {
    PIPELAB_ASSIGN_OR_RETURN(SplitSample split,
                             SampleWithPeers(step, batches_->Targets(step, /*member=*/0),
                                             split_sampler_.get(), group_, arena_));
    membership_->Put(batch, ShufflesOf(split));
    GraphSample own;
    for (SplitBlock& b : split.blocks) own.blocks.push_back(std::move(b.block));
    batches_->Index(std::move(own), out.i32(), &split.inputs);
    return out;
  }
  batches_->Index(sampler_.Sample(step, batches_->Targets(step, member_)), out.i32());
  return out;
}

absl::StatusOr<Tensor> GatherStage::Prepare(int, Tensor in) {
  batches_->GatherRows(in.i32());
  return in;
}

absl::StatusOr<Tensor> MoveStage::Prepare(int, Tensor in) {
  if (arena_->memory() == nullptr) return in;
  const int64_t words = ReadLayout(in.i32()).words;
  Tensor out = Room(arena_);
  SetHostIds(out.Rows(0, words), in.i32().subspan(0, words));
  return out;
}

GraphTrainStage::GraphTrainStage(const ModelGraph& graph, const GraphBatches* batches,
                                 Backend* backend, const GraphTrainOptions& options,
                                 const std::vector<int>& layers)
    : batches_(batches),
      backend_(backend),
      seed_(options.seed),
      keep_logits_(options.keep_logits),
      parameters_(graph, layers, options.optimizer, backend, options.seed) {}

absl::StatusOr<std::unique_ptr<GraphTrainStage>> GraphTrainStage::Create(
    const ModelGraph& graph, const GraphBatches* batches, Backend* backend,
    const GraphTrainOptions& options) {
  std::vector<int> numbers(graph.layers.size() - 1);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::unique_ptr<GraphTrainStage> stage(
      new GraphTrainStage(graph, batches, backend, options, numbers));
  for (int i : numbers) {
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(graph.layers[i]));
    layer->SetParameters(stage->parameters_.OfLayer(i));
    stage->layers_.push_back(std::move(layer));
  }
  return stage;
}

LayerContext GraphTrainStage::ContextOf(const Batch& batch) const {
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = batch.step;
  ctx.samples = 1;
  ctx.seed = seed_;
  ctx.loss_scale = 1.0f / static_cast<float>(batches_->options().batch);
  ctx.batch = &batch.labels;
  ctx.graph = batch.tensors.blocks;
  ctx.graph_peers = batch.peers.get();
  return ctx;
}

absl::StatusOr<std::vector<Tensor>> GraphTrainStage::Forward(const Action& a,
                                                             std::vector<Tensor> inputs, bool) {
  Batch& batch = in_flight_[a.micro_batch];
  batch = Batch();
  batch.words = std::move(inputs[0]);
  batch.tensors = ViewBatch(batch.words);
  batch.labels.fields = {batch.tensors.labels_T};
  batch.stashes.resize(layers_.size());
  batch.step = steps_;
  if (membership_ != nullptr) {
    batch.peers = std::make_unique<GraphPeers>(membership_->Take(a.micro_batch), group_, backend_);
  }
  LayerContext ctx = ContextOf(batch);
  double loss = 0;
  ctx.loss_sum = &loss;
  std::vector<float> logits;
  if (keep_logits_) ctx.predictions = &logits;
  Tensor x = batch.tensors.rows_SW;
  for (size_t i = 0; i < layers_.size(); ++i) {
    batch.inputs.push_back(std::move(x));
    x = layers_[i]->Forward(ctx, {batch.inputs.back()}, &batch.stashes[i]);
  }
  PIPELAB_RETURN_IF_ERROR(Finish());
  losses_[a.micro_batch] = loss;
  if (keep_logits_) KeepLogits(batch.tensors.blocks.back(), logits);
  // The word that lets a worker go on says nothing.
  return std::vector<Tensor>{
      backend_->arena().Allocate(DataType::kInt32, {1}, MemoryKind::kActivation)};
}

absl::Status GraphTrainStage::Finish() const {
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return group_ == nullptr ? absl::OkStatus() : group_->status();
}

void GraphTrainStage::KeepLogits(const GraphIndex& last, const std::vector<float>& logits) {
  const std::vector<int32_t> vertices = HostIds(last.vertices_T);
  const int64_t classes = batches_->data().classes;
  logits_.clear();
  for (size_t t = 0; t < vertices.size(); ++t) {
    const auto row = logits.begin() + static_cast<int64_t>(t) * classes;
    logits_[vertices[t]].assign(row, row + classes);
  }
}

absl::StatusOr<std::vector<Tensor>> GraphTrainStage::Backward(const Action& a,
                                                              std::vector<Tensor>) {
  const auto it = in_flight_.find(a.micro_batch);
  if (a.kind != ActionKind::kBackward) return WholePasses();
  if (it == in_flight_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(ToString(a), " has no forward before it"));
  }
  Batch& batch = it->second;
  const LayerContext ctx = ContextOf(batch);
  parameters_.PrepareGradients();
  Tensor dy;
  for (size_t i = layers_.size(); i-- > 0;) {
    const absl::Span<const Tensor> x = absl::MakeConstSpan(&batch.inputs[i], 1);
    std::vector<Tensor> dx = layers_[i]->BackwardInput(ctx, x, std::move(dy), &batch.stashes[i]);
    layers_[i]->BackwardWeight(ctx, x, &batch.stashes[i]);
    batch.inputs[i] = Tensor();
    dy = std::move(dx[0]);
  }
  parameters_.GradientsAdded();
  PIPELAB_RETURN_IF_ERROR(Finish());
  in_flight_.erase(it);
  return std::vector<Tensor>(1);  // rows are data
}

absl::Status GraphTrainStage::Step(const Action&) {
  parameters_.Step(++steps_);
  return backend_->Finish();
}

absl::StatusOr<std::vector<float>> GraphTrainStage::Evaluate(const std::vector<GraphIndex>& blocks,
                                                             const Tensor& rows_SW) {
  std::vector<float> logits;
  Batch batch;
  batch.tensors.blocks = blocks;
  const Tensor labels = backend_->arena().Allocate(DataType::kInt32, {blocks.back().num_targets},
                                                   MemoryKind::kActivation);
  SetHostIds(labels, std::vector<int32_t>(blocks.back().num_targets));  // its loss is not read
  batch.labels.fields = {labels};
  LayerContext ctx = ContextOf(batch);
  double loss = 0;
  ctx.loss_sum = &loss;
  ctx.training = false;
  ctx.predictions = &logits;
  Tensor x = rows_SW;
  for (const auto& layer : layers_) {
    LayerStash stash;
    x = layer->Forward(ctx, {x}, &stash);
  }
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return logits;
}

}  // namespace pipelab
