// A stage made of layers: any convex set of a model's, run on one device's backend for the
// executor, or by hand.
//
//   LayerStageOptions options;
//   options.micro_batch_size = 4;
//   options.data = &text;
//   options.batch_tokens = 8 * 4 * 128;          // micro-batches * samples * tokens
//   PIPELAB_ASSIGN_OR_RETURN(ModelPartition p, MakePartition(graph, stage_of_layer));
//   PIPELAB_ASSIGN_OR_RETURN(auto stage,
//                            LayerStage::Create(graph, p, /*stage=*/0, backend.get(), options));
//
// Any number of micro-batches can be in flight, each once. A fused backward is the input part and
// then the weight part of each layer, from the last to the first, each layer's memory freed before
// the next begins. Which tensors are held, copied and summed when is in
// pipelines/cost/stage_plan.h. Data and dropout are keyed by (training step, sample), and a
// micro-batch keeps the step of its forward.
//
// In asynchronous schedules a training step is a run of the program, in which the stage takes
// several optimizer steps, each making the next version of its weights. Passes compute with the
// version of their action; older versions are kept, as copies, until their last use
// (weight_versions.h).
//
// Memory is what pipelines/cost/stage_costs.h predicts, to the byte, if the caller hands tensors
// over (moves them in) and takes no copies.
//
// Errors carry the action: FailedPrecondition for passes out of order, InvalidArgument for tensors
// of another shape.
#ifndef PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_H_
#define PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "kernels/backend.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "models/layers/optimizer.h"
#include "models/layers/tensor_peers.h"
#include "pipelines/cost/model_partition.h"  // IWYU pragma: export
#include "pipelines/cost/stage_plan.h"
#include "pipelines/runtime/slice_exchanger.h"
#include "pipelines/runtime/stage_module.h"
#include "pipelines/runtime/stage_parameters.h"
#include "pipelines/runtime/stage_statistics.h"
#include "pipelines/runtime/weight_versions.h"

namespace pipelab {

struct LayerStageOptions {
  int64_t micro_batch_size = 1;            // of the whole group
  int data_parallel_size = 1, member = 0;  // this module computes part `member` of the samples
  const BatchSource* data = nullptr;       // may be null where no layer of the stage reads data
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  int64_t batch_tokens = 0;  // of a step's whole batch: the loss that is trained is their mean
  // Tokens of each slice of a sample, where the schedule has token slices (as many); empty: whole
  // samples. Every layer must know slices (LayerSpec::slice_costs).
  std::vector<int64_t> slices;
  // Asynchronous: what VersionUses (pipelines/ir/versions.h) says of the stage. Empty: one
  // optimizer step a run, at its end.
  std::vector<int32_t> version_uses;
  // The micro-batch whose samples each of the stage's has (Schedule::SampleOf); empty: its own.
  std::vector<int32_t> sample_of_pass;
  // Inference (Schedule::forward_only): no dropout, running statistics, weights alone, and nothing
  // is kept for a backward.
  bool forward_only = false;
  // With forward_only: passes with caches (RunPass) alone, which read no data. Every layer must
  // know them (models/specs/token_cache.h).
  bool cached = false;
  // What this copy keeps of the stage's own parameters: ShardOf (pipelines/ir/program.h).
  Shard shard;
  // The devices that compute the stage's layers together with this one; the graph is then the
  // device's (models/graph/tensor_member.h). They must outlive the stage. Null: none.
  TensorPeers* peers = nullptr;
  // The devices of the group, this one too, where batch normalisation is to use the statistics of
  // all their rows (models/graph/batch_norm_copies.h). Null: of the own.
  TensorPeers* copies = nullptr;
  // The devices with the other tokens of the same samples, this one too; the graph is then the
  // device's (LayerSpec::context). Null: none.
  TensorPeers* context = nullptr;
  // With which its passes exchange attention with those of other stages; null: they do not. It must
  // outlive the stage.
  SliceExchanger* exchange = nullptr;
  // The devices that divide its layers' experts, this one too, in the order of their shares
  // (MemberLayer). Null: none.
  TensorPeers* experts = nullptr;
};

class LayerStage : public StageModule {
 public:
  // Stage `stage` of the partition; tensors come and go one an edge of partition.stages, in its
  // order. Graph and partition are not needed afterwards; `backend` and the data must outlive the
  // stage. InvalidArgument names what does not fit.
  static absl::StatusOr<std::unique_ptr<LayerStage>> Create(const ModelGraph& graph,
                                                            const ModelPartition& partition,
                                                            int stage, Backend* backend,
                                                            const LayerStageOptions& options);
  // The layers [begin, end), with those before them as one stage and those after them as another.
  static absl::StatusOr<std::unique_ptr<LayerStage>> Create(const ModelGraph& graph, int begin,
                                                            int end, Backend* backend,
                                                            const LayerStageOptions& options);

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  absl::Status Recompute(const Action& a) override;
  absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                               std::vector<Tensor> output_gradients) override;
  absl::Status BackwardWeight(const Action& a) override;
  absl::StatusOr<std::vector<Tensor*>> Kept(const Action& a) override;
  // Lets go of a forward that will have no backward here.
  void Forget(const Action& a) { in_flight_.erase({a.micro_batch, a.slice}); }
  // The optimizer's step with the gradients added up since the last one, on the newest weights. The
  // last one of a run (synchronous: each) advances the training step; it is refused while
  // micro-batches are in flight.
  absl::Status Step(const Action& a) override;
  TensorSpec InputSpec(int in_edge, int slice) const override;
  TensorSpec OutputSpec(int out_edge, int slice) const override;
  absl::StatusOr<Tensor> Gradients(absl::string_view parameter) override {
    return parameters_.Gradients(parameter);
  }
  // Sharded parameters. Passes are refused while the weights are not put together.
  absl::StatusOr<PartedTensor> BeginGather() override { return parameters_.BeginGather(); }
  absl::Status EndGather() override;
  absl::Status Release() override;
  absl::StatusOr<PartedTensor> BeginScatter() override { return Scatter(&parameters_); }
  absl::Status EndScatter() override;
  TensorSpec HopSpec(bool gradient) const override { return parameters_.HopSpec(gradient); }
  absl::StatusOr<Tensor> SendHop(bool gradient) override;
  absl::Status ReceiveHop(bool gradient, Tensor tensor) override;
  SharedParameters* experts() override {
    return parameters_.experts() == nullptr ? nullptr : &experts_;
  }
  absl::StatusOr<Tensor> BeginNorm(const NormShare& share) override;
  absl::Status EndNorm(const Tensor& squares) override;
  int64_t library_ns() const override { return backend_->library_ns(); }

  // Forward only, without dropout, on any data; nothing is kept. Takes the inputs of `samples`
  // samples, one an in-edge, and returns the outputs; the loss's stage adds the sum over tokens to
  // `loss_sum`.
  absl::StatusOr<std::vector<Tensor>> Evaluate(const BatchSource& data, int64_t step,
                                               int64_t first_sample, int64_t samples,
                                               std::vector<Tensor> inputs, double* loss_sum);

  // A pass of inference, with forward_only: takes and returns tensors of the pass's rows, one an
  // edge. `caches`, [place] of the stage's layers, are the caller's, and empty before the first
  // pass. The loss's stage adds logits to `predictions`, a row for each run that predicts.
  absl::StatusOr<std::vector<Tensor>> RunPass(const CachedPass& pass, std::vector<Tensor> inputs,
                                              std::vector<LayerStash>* caches,
                                              std::vector<float>* predictions);
  int num_in_edges() const { return plan_.num_in_edges; }
  int num_out_edges() const { return static_cast<int>(out_edges_.size()); }

  // Loss of each micro-batch's last forward, the sum over this member's tokens. Empty but in the
  // loss's stage.
  const std::map<int, double>& losses() const { return losses_; }
  // The rows that this member routes, as forwards have added them since the last call, by the
  // number in the graph of each layer with experts.
  std::map<int, ExpertLoads> TakeLoads() { return std::exchange(loads_, {}); }
  // The norm of all gradients of the model at the last step, before clipping; 0 where no norm was
  // taken.
  double gradient_norm() const { return gradient_norm_; }
  // Training steps so far, the optimizer's being as many times the steps of a run. Set it to
  // resume, between runs.
  int64_t training_step() const { return training_step_; }
  absl::Status SetTrainingStep(int64_t step);
  int in_flight() const { return static_cast<int>(in_flight_.size()); }

  // Values and optimizer state by name, for tests and checkpoints.
  StageParameters& parameters() { return parameters_; }
  const StageParameters& parameters() const { return parameters_; }
  // Running statistics, in the same way.
  StageStatistics& statistics() { return statistics_; }
  const StageStatistics& statistics() const { return statistics_; }

 private:
  // As StageModule::experts says.
  class Experts final : public SharedParameters {
   public:
    explicit Experts(LayerStage* stage) : stage_(*stage) {}
    absl::StatusOr<Tensor> Gradients(absl::string_view parameter) override {
      return own().Gradients(parameter);
    }
    absl::StatusOr<PartedTensor> BeginGather() override { return own().BeginGather(); }
    absl::Status EndGather() override { return stage_.EndGather(); }
    absl::StatusOr<PartedTensor> BeginScatter() override { return stage_.Scatter(&own()); }
    absl::Status EndScatter() override {
      own().EndScatter();
      return stage_.backend_->Finish();
    }

   private:
    StageParameters& own() const { return *stage_.parameters_.experts(); }
    LayerStage& stage_;
  };

  enum class Phase : uint8_t { kDropped, kReady, kInputDone };
  static constexpr int kNewest = -1;
  using Key = std::pair<int, int>;  // micro-batch, slice
  // What a forward leaves for its backward; of one slice, where there are several.
  struct MicroBatch {
    Phase phase = Phase::kReady;
    int64_t step = 0;
    int version = 0;                  // of the weights
    std::vector<Tensor> values;       // [value of plan_]
    std::vector<LayerStash> stashes;  // [place]
  };
  struct EdgeShape {  // of one sample
    std::string layer;
    std::vector<int64_t> shape;
  };

  LayerStage(const ModelGraph& graph, const ModelPartition& partition, int stage, Backend* backend,
             const LayerStageOptions& options);
  bool has_loss() const { return loss_place_ >= 0; }
  absl::StatusOr<MicroBatch*> Find(const Action& a, Phase phase);
  absl::Status CheckTensors(const Action& a, const char* what, const std::vector<Tensor>& tensors,
                            const std::vector<EdgeShape>& edges,
                            const std::vector<bool>& expected = {}) const;
  LayerContext ContextFor(int64_t step, const Action& a) const;
  // The context of a forward or backward of the schedule, with what it exchanges.
  LayerContext ContextOfPass(int64_t step, const Action& a) const;
  // Layers compute with this version from here on.
  void Bind(int version);
  // Gives layers the tensors that are there now.
  void BindAgain();
  absl::Status CheckGathered(const Action& a) const;
  // Begins to scatter the gradients of parameters_, or of their experts.
  absl::StatusOr<PartedTensor> Scatter(StageParameters* parameters);
  // Weight gradients come: there is room for them.
  void PrepareGradients();
  // A pass is over: a version that nobody will need again goes.
  void CountUse(int version);
  // Where the peers split rows by tokens, each has the gradients of its own: sums those of the
  // parameters that all have whole, once a step.
  void SumOverRows();
  // Waits for the backend's work; its error, or the peers'.
  absl::Status FinishWork() const;
  std::vector<Tensor> InputsOf(int place, const MicroBatch& mb) const;
  // Lets go of what the pass does not need after this layer.
  void Release(StagePass pass, int place, MicroBatch* mb) const;
  // Runs all layers on the in-edges' values; keeps what the pass asks for. Returns a tensor an
  // out-edge; a recompute none.
  // `sequences`, [place]: what the slices of the micro-batch share; null for whole samples.
  std::vector<Tensor> RunForward(LayerContext ctx, const BatchSource* data, StagePass pass,
                                 std::vector<LayerStash>* sequences, MicroBatch* mb);
  // Runs the layers of RunForward that are at the block's places, in order.
  void ForwardBlock(const StagePlan::Block& block, LayerContext ctx, const BatchSource* data,
                    StagePass pass, std::vector<LayerStash>* sequences, MicroBatch* mb);
  // RunForward's `sequences` of the action's micro-batch; null for whole samples.
  std::vector<LayerStash>* SequencesOf(const Action& a);
  // One layer of a backward. `gradients`, by value, are of what comes out of layers and gain those
  // of this layer's inputs.
  void BackwardLayer(int place, StagePass pass, LayerContext ctx, MicroBatch* mb,
                     std::vector<Tensor>* gradients);
  // A backward is over, or a weight part.
  void Finished(const Action& a);
  void AddTo(Tensor* sum, Tensor share) const;
  BatchView DataOf(int place, const BatchSource* data, const LayerContext& ctx) const;
  Shape RowsOf(const std::vector<int64_t>& sample_shape, int slice) const;

  Backend* backend_;
  LayerStageOptions options_;
  StagePlan plan_;
  int64_t samples_;  // of a micro-batch, this member's
  std::vector<TokenSlice> slices_;
  std::vector<LayerSpec> specs_;  // [place]
  std::vector<EdgeShape> in_edges_, out_edges_;
  std::vector<bool> takes_gradient_;            // [out-edge]
  int loss_place_;                              // of the model's loss; -1: it is in another stage
  std::vector<std::unique_ptr<Layer>> layers_;  // [place]
  StageParameters parameters_;
  Experts experts_{this};
  StageStatistics statistics_;
  WeightVersions versions_;
  int bound_ = kNewest;  // the kept version that layers compute with, or kNewest
  std::map<Key, MicroBatch> in_flight_;
  std::map<int, std::vector<LayerStash>> sequences_;  // [micro-batch in slices][place]
  std::map<int, double> losses_;
  std::map<int, ExpertLoads> loads_;
  absl::optional<double> squares_;  // of all gradients, for the next step
  bool rows_summed_ = false;        // for the next step
  double gradient_norm_ = 0;
  int64_t training_step_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_H_
