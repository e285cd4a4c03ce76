// The part of LayerStage that computes: forward, recompute, backward and its parts.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/layer_stage_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {

void LayerStage::ForwardBlock(const StagePlan::Block& block, LayerContext ctx,
                              const BatchSource* data, StagePass pass,
                              std::vector<LayerStash>* sequences, MicroBatch* mb) {
  const bool drop = pass == StagePass::kForwardDrop && plan_.Drops(block);
  double* const loss = ctx.loss_sum;
  for (int place = block.begin; place < block.end; ++place) {
    const BatchView view = DataOf(place, data, ctx);
    ctx.batch = &view;
    ctx.sequence = sequences == nullptr ? nullptr : &(*sequences)[place];
    LayerStash stash;
    ExpertLoads loads;
    ctx.loads = ctx.training && pass != StagePass::kRecompute ? &loads : nullptr;
    double local_loss = 0;  // of a stage that learns locally
    ctx.loss_sum = place == loss_place_ ? loss : &local_loss;
    mb->values[plan_.output(place)] = layers_[place]->Forward(ctx, InputsOf(place, *mb), &stash);
    if (!loads.rows.empty()) AddLoads(loads, &loads_[plan_.layers[place]]);
    if (!drop) mb->stashes[place] = std::move(stash);
    Release(pass, place, mb);
  }
}

std::vector<Tensor> LayerStage::RunForward(LayerContext ctx, const BatchSource* data,
                                           StagePass pass, std::vector<LayerStash>* sequences,
                                           MicroBatch* mb) {
  const bool drop = pass == StagePass::kForwardDrop;
  for (const StagePlan::Block& block : plan_.blocks) {
    ForwardBlock(block, ctx, data, pass, sequences, mb);
  }
  std::vector<Tensor> outputs;
  if (pass == StagePass::kRecompute) return outputs;
  for (int edge = 0; edge < static_cast<int>(plan_.out_values.size()); ++edge) {
    const StagePlan::Value& plan = plan_.values[plan_.out_values[edge]];
    Tensor& value = mb->values[plan_.out_values[edge]];
    const bool last = edge == plan.out_edges.back();
    if (last && !plan.stays(drop)) {
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
  if (drop && plan_.rebuilds) return Refuse(a, "drops for a recompute what its backward rebuilds");
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
  LayerContext ctx = ContextOfPass(mb.step, a);
  double loss = 0;
  ctx.loss_sum = &loss;
  Bind(a.version);
  const bool drops = drop || plan_.rebuilds || options_.forward_only;
  std::vector<Tensor> outputs =
      RunForward(ctx, options_.data, drops ? StagePass::kForwardDrop : StagePass::kForward,
                 SequencesOf(a), &mb);
  PIPELAB_RETURN_IF_ERROR(FinishWork());
  if (options_.forward_only) in_flight_.erase({a.micro_batch, a.slice});
  CountUse(a.version);
  if (has_loss() && a.slice == 0) losses_[a.micro_batch] = 0;
  if (has_loss()) losses_[a.micro_batch] += loss;
  return outputs;
}

absl::StatusOr<std::vector<Tensor>> LayerStage::RunPass(const CachedPass& pass,
                                                        std::vector<Tensor> inputs,
                                                        std::vector<LayerStash>* caches,
                                                        std::vector<float>* predictions) {
  LayerContext ctx = ContextFor(training_step_, Action());
  ctx.samples = 1;
  ctx.slice = TokenSlice();
  ctx.cached = &pass;
  ctx.predictions = predictions;
  double loss = 0;  // there are no targets
  ctx.loss_sum = &loss;
  caches->resize(layers_.size());
  MicroBatch mb;
  mb.values = std::move(inputs);
  mb.values.resize(plan_.values.size());
  std::vector<Tensor> outputs = RunForward(ctx, nullptr, StagePass::kForwardDrop, caches, &mb);
  PIPELAB_RETURN_IF_ERROR(FinishWork());
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
  PIPELAB_RETURN_IF_ERROR(FinishWork());
  CountUse(a.version);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor*>> LayerStage::Kept(const Action& a) {
  PIPELAB_RETURN_IF_ERROR(
      CheckAction(a, {ActionKind::kOffload, ActionKind::kReload}, slices_.size()));
  const auto it = in_flight_.find({a.micro_batch, a.slice});
  if (it == in_flight_.end()) return Refuse(a, "has no forward before it");
  MicroBatch& mb = it->second;
  if (mb.phase != Phase::kReady) return Refuse(a, "does not find what a whole forward keeps");
  std::vector<Tensor*> kept;
  for (Tensor& value : mb.values) kept.push_back(&value);
  for (LayerStash& stash : mb.stashes) {
    for (Tensor& tensor : stash.tensors) kept.push_back(&tensor);
  }
  return kept;
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
  const bool splits = plan_.splits[place];
  if (pass == StagePass::kBackwardWeight && !splits) return;
  const BatchView view = DataOf(place, options_.data, ctx);
  ctx.batch = &view;
  std::vector<Tensor> inputs = InputsOf(place, *mb), shares;
  LayerStash* stash = &mb->stashes[place];
  if (pass != StagePass::kBackwardWeight) {
    shares = layers_[place]->BackwardInput(ctx, inputs,
                                           std::move((*gradients)[plan_.output(place)]), stash);
  }
  if (pass != StagePass::kBackwardInput || !splits)
    layers_[place]->BackwardWeight(ctx, inputs, stash);
  inputs.clear();
  for (size_t k = 0; k < shares.size(); ++k) {
    if (plan_.gives[place][k]) AddTo(&(*gradients)[plan_.inputs[place][k]], std::move(shares[k]));
  }
  Release(pass, place, mb);
}

absl::StatusOr<std::vector<Tensor>> LayerStage::Backward(const Action& a,
                                                         std::vector<Tensor> output_gradients) {
  PIPELAB_RETURN_IF_ERROR(
      CheckAction(a, {ActionKind::kBackward, ActionKind::kBackwardInput}, slices_.size()));
  PIPELAB_RETURN_IF_ERROR(
      CheckTensors(a, "output gradients", output_gradients, out_edges_, takes_gradient_));
  PIPELAB_ASSIGN_OR_RETURN(MicroBatch * mb, Find(a, Phase::kReady));
  const auto later = in_flight_.find({a.micro_batch, a.slice + 1});
  if (later != in_flight_.end() && later->second.phase != Phase::kInputDone) {
    return Refuse(a, "comes before the backward of the next slice, which has gradients for it");
  }
  const LayerContext ctx = ContextOfPass(mb->step, a);
  std::vector<LayerStash>* sequences = SequencesOf(a);
  Bind(a.version);
  const bool all_split = std::count(plan_.splits.begin(), plan_.splits.end(), false) == 0;
  if (a.kind == ActionKind::kBackward || !all_split) PrepareGradients();
  std::vector<Tensor> gradients(plan_.values.size());
  for (int edge = static_cast<int>(plan_.out_values.size()) - 1; edge >= 0; --edge) {
    if (!takes_gradient_[edge]) continue;
    AddTo(&gradients[plan_.out_values[edge]], std::move(output_gradients[edge]));
  }
  const bool fused = a.kind == ActionKind::kBackward;
  const StagePass pass = fused ? StagePass::kBackward : StagePass::kBackwardInput;
  for (auto block = plan_.blocks.rbegin(); block != plan_.blocks.rend(); ++block) {
    if (block->rebuilt) {
      LayerContext again = ctx;
      double loss_again = 0;  // counted by the forward already
      again.loss_sum = &loss_again;
      ForwardBlock(*block, again, options_.data, StagePass::kRecompute, nullptr, mb);
    }
    for (int place = block->end - 1; place >= block->begin; --place) {
      LayerContext layer_ctx = ctx;
      layer_ctx.sequence = sequences == nullptr ? nullptr : &(*sequences)[place];
      BackwardLayer(place, pass, layer_ctx, mb, &gradients);
    }
  }
  if (a.slice == 0) sequences_.erase(a.micro_batch);
  if (fused) {
    Finished(a);
  } else {
    mb->phase = Phase::kInputDone;
  }
  PIPELAB_RETURN_IF_ERROR(FinishWork());
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
  PIPELAB_RETURN_IF_ERROR(FinishWork());
  CountUse(a.version);
  return absl::OkStatus();
}

}  // namespace pipelab
