// Training without a pipeline: one loop over micro-batches and layers. What "equals serial
// training" means, so it shares layers and initial values with the pipelines and nothing else: no
// stages, schedules or messages.
//
//   Arena arena;
//   auto backend = MakeCpuBackend(&arena);
//   PIPELAB_ASSIGN_OR_RETURN(auto trainer, SerialTrainer::Create(graph, backend.get(), options));
//   for (int i = 0; i < 50; ++i) {
//     PIPELAB_ASSIGN_OR_RETURN(double loss, trainer->Step());      // mean over the step's targets
//   }
//
// Order, on which equality to the bit rests: micro-batches ascending, each forward (layers
// ascending) then backward (layers descending); a parameter's gradient adds up in that order; the
// gradient of an output that several layers take is their sum from the last of these layers to the
// first; a tied parameter's gradients are summed in layer order at the step. The global norm is the
// root of the sum, in double and in the order of first uses, of each value's sum of squares, which
// is rounded to float (what pipelines send to each other). With token slices: all slices of a
// micro-batch forward, in token order, then all backward, from the last to the first.
//
// Memory: an output is held until the backward of its first consumer is over, or, where no
// consumer's backward reads it (InputUse), until the forward of its last one.
#ifndef PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_
#define PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/checkpoint/training_state.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "models/layers/optimizer.h"

namespace pipelab {

// Training on older weights, as asynchronous pipelines do, by the rule that a paper gives: an
// optimizer step after each `per_update` micro-batches, which divide those of a training step, with
// the gradient of the mean of their losses. Micro-batch t computes in stage s with the weights that
// version(s, t) of the training step's optimizer steps have made. 0: one step, on the newest.
struct Staleness {
  int per_update = 0;
  std::function<int(int stage, int micro_batch)> version;
  // A gradient that stage `to` gives an output of stage `from` goes through the forward of so many
  // micro-batches later; the first ones find zeros, and the last of a step are lost. None: of the
  // same one.
  std::function<int(int from, int to)> lag = nullptr;
};

struct SerialOptions {
  int64_t micro_batch_size = 1;
  int num_micro_batches = 1;
  const BatchSource* data = nullptr;
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  // [micro-batch] -> which partial sum of gradients it goes to; the sums are added up, in order, at
  // the step. Empty: one sum. This is how a scheme with several replicas adds, without the
  // replicas.
  std::vector<int> sum_of_micro_batch;
  // [stage of stage_of_layer][micro-batch] In its place, where each stage adds in an order of its
  // own, as weights that travel do (pipelines/ir/weight_ring.h). Ties between stages have one
  // order.
  std::vector<std::vector<int>> sums_of_stage;
  // Equal parts of each micro-batch's samples, computed one after the other, each part's gradients
  // in a sum of their own: how data-parallel copies compute and add, without the copies. A batch
  // normalisation then has the statistics of the part. Must divide the samples.
  int copies = 1;
  // So many sums that follow one another are added up first, and then these results: how sets of
  // copies add that share state (Program::shards). Divides them. 0: all in order.
  int shards = 0;
  // [layer] -> its stage in a pipeline whose order of summing is to be followed
  // (pipelines/cost/model_partition.h): the gradients that the consumers of an output in one other
  // stage have for it are added up there first. Makes a difference for an output of three or more
  // consumers only. Empty: one stage.
  std::vector<int> stage_of_layer;
  // [layer] -> equal parts of a micro-batch's samples that a batch normalisation treats by itself,
  // all else taking them together, where stages differ in their copies; must divide the samples.
  // Running statistics are the first part's. Empty: 1.
  std::vector<int> norm_parts;
  Staleness staleness;  // its stages are stage_of_layer's
  // Tokens of each slice of a sample; empty: whole samples. This is how a token pipeline computes
  // and adds, without the pipeline (models/graph/token_slice.h).
  std::vector<int64_t> slices;
};

class SerialTrainer {
 public:
  // `backend` and the data must outlive the trainer. InvalidArgument: a graph that is not
  // valid or has unknown layers, data that does not fit.
  static absl::StatusOr<std::unique_ptr<SerialTrainer>> Create(ModelGraph graph, Backend* backend,
                                                               const SerialOptions& options);

  const ModelGraph& graph() const { return graph_; }

  // One optimizer step over all micro-batches (with staleness: several). Returns the mean loss over
  // their targets, before the step.
  absl::StatusOr<double> Step();
  // The norm of all gradients of the last step, before clipping; 0 where the optimizer needs none
  // (OptimizerOptions::clip_norm).
  double gradient_norm() const { return gradient_norm_; }
  // The losses of the last step (or LossGradients), by micro-batch: sums over targets.
  const std::vector<double>& losses() const { return losses_; }
  // Mean loss over the samples [first_sample, first_sample + samples) of a step's batch of any
  // source, without dropout and without training. What the loss layer predicts is added to
  // `predictions` (LayerContext::predictions), sample by sample, where that is not null.
  // Where blocks learn locally (zoo/local_heads.h), losses and predictions are those of the last
  // loss, or from here on of this one: an exit of the network before its end.
  void JudgeBy(int loss_layer);
  absl::StatusOr<double> Evaluate(const BatchSource& data, int64_t step, int64_t first_sample,
                                  int64_t samples, std::vector<float>* predictions = nullptr);

  // The gradient of the mean loss of the step that would come next, by ValueName, without taking
  // it.
  absl::StatusOr<std::map<std::string, std::vector<float>>> LossGradients();

  // A copy of a parameter's value, or of running statistics; NotFound. A tied parameter has its
  // value under each of its names.
  absl::StatusOr<std::vector<float>> ParameterValue(const std::string& name) const;
  // NotFound; InvalidArgument for another number of elements.
  absl::Status SetParameterValue(const std::string& name, absl::Span<const float> value);

  // Everything that a step changes, to go on from: here or in a pipeline (training_state.h).
  TrainingState State() const;
  // All of it or, with an error that names what does not fit, nothing.
  absl::Status SetState(const TrainingState& state);

 private:
  // One value, with a gradient for each of its uses, in layer order, and each partial sum.
  struct Value {
    Tensor value;               // for layers
    Tensor master;              // in float32: the value itself, where that is
    std::vector<Tensor> state;  // the optimizer's, as StateNames
    std::vector<Tensor> gradients;
    std::vector<Tensor> older;  // `value` after 0, 1, ... optimizer steps of this training step
  };

  SerialTrainer(ModelGraph graph, Backend* backend, const SerialOptions& options);
  absl::Status MakeLayers();
  const Tensor* FindValue(const std::string& name) const;  // the master, of a parameter
  // Values from masters, where these are tensors of their own.
  void TakeMasters();
  StateTarget Target() const;
  const Tensor& StateTensor(const StateEntry& entry) const;
  // The partial sum that a micro-batch's gradients of the layer go to, and how many there are.
  int PartialSum(int layer, int micro_batch) const;
  int NumSums() const;
  bool stale() const { return options_.staleness.per_update > 0; }
  // Updates of a training step, and micro-batches of one update.
  int Updates() const { return stale() ? options_.num_micro_batches / UpdateSize() : 1; }
  int UpdateSize() const {
    return stale() ? options_.staleness.per_update : options_.num_micro_batches;
  }
  // The micro-batches of one optimizer step; each value's first gradient is then the sum.
  void AddGradients(int update);
  // The optimizer's step.
  void Update(int update);
  // Scales gradients so that their norm is what the optimizer allows.
  void ClipGradients();
  Tensor NewState(const ParameterSpec& spec, MemoryKind kind);
  void MicroBatch(int micro_batch, int copy);
  // Gives layers the weights that the micro-batch computes with, and its partial sum.
  void Bind(int micro_batch, int copy);
  // The gradient of one output while its consumers, from the last to the first, add their shares:
  // the sums of other stages, the last stage first, and the shares of its own.
  struct OutputGradient {
    std::map<int, Tensor, std::greater<int>> of_stages;
    std::vector<Tensor> own;
  };

  std::vector<Tensor> InputsOf(int layer, const std::vector<Tensor>& outputs) const;
  // Runs one layer on its inputs, and lets go of those that nobody needs any more. `keep`: for the
  // backward.
  Tensor Forward(int layer, LayerContext ctx, const BatchSource& data, bool keep, LayerStash* stash,
                 std::vector<Tensor>* outputs);
  void Backward(int layer, LayerContext ctx, LayerStash* stash, std::vector<Tensor>* outputs,
                std::vector<OutputGradient>* gradients);
  // Puts the stages' gradients of earlier micro-batches in the place of this one's. `row`: the
  // first of the copy in a micro-batch.
  void TakeLateGradients(int layer, int64_t row, OutputGradient* gradient);
  Tensor SumOf(OutputGradient gradient);
  // The first layer whose backward reads the output, or -1.
  int FirstReader(int layer) const;
  int StageOf(int layer) const;
  bool HasOtherStages(int layer) const;  // among its consumers
  LayerContext ContextFor(int64_t step, int64_t first_sample, int64_t samples) const;

  ModelGraph graph_;
  Backend* backend_;
  SerialOptions options_;
  std::vector<TokenSlice> slices_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::vector<int>> consumers_;  // [layer]
  // [layer, stage, first row] What the stage has given the layer's output, the oldest first.
  std::map<std::tuple<int, int, int64_t>, std::deque<Tensor>> late_;
  int judged_loss_;                                              // a layer
  std::vector<std::vector<std::vector<Parameter>>> parameters_;  // [partial sum][layer]
  std::map<std::string, Value> values_;                          // by ValueName
  std::vector<std::string> value_order_;                         // of first uses
  std::map<std::string, Tensor> statistics_;                     // by name
  std::vector<double> losses_;
  double gradient_norm_ = 0;
  int64_t step_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_
