// The stages of a graph network's training (pipelines/graphs/preparation.h): samples, rows and
// moves of batches, and the network.
//
//   const GraphBatches batches(&data, {.batch = 1024});
//   SampleStage sample(&batches, /*member=*/0, &first_step, &arena);
//   PIPELAB_ASSIGN_OR_RETURN(auto train, GraphTrainStage::Create(graph, &batches, backend, {}));
//   ... an Executor calls them, or a loop ...
//   train->losses();                          // by batch
//
// A batch is one tensor of 4-byte words (models/data/graph_batch.h), with room for the largest: the
// sample's stage makes it, and those behind write into it. It is a pure function of the training
// step, so whoever prepares it prepares the same.
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_STAGE_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_STAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/backend.h"
#include "models/data/graph_batch.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/graph/layer_spec.h"
#include "models/layers/graph_index.h"
#include "models/layers/graph_peers.h"
#include "models/layers/layer.h"
#include "models/layers/optimizer.h"
#include "models/layers/tensor_peers.h"
#include "pipelines/runtime/stage_module.h"
#include "pipelines/runtime/stage_parameters.h"

namespace pipelab {

// Forwards alone, one tensor of words in and one out.
class PreparationModule : public StageModule {
 public:
  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  TensorSpec InputSpec(int, int) const override { return {DataType::kInt32, {words_in_}}; }
  TensorSpec OutputSpec(int, int) const override {
    return {DataType::kInt32, {batches_->batch_words()}};
  }
  absl::Status Recompute(const Action&) override { return ForwardsAlone(); }
  absl::StatusOr<std::vector<Tensor>> Backward(const Action&, std::vector<Tensor>) override {
    return ForwardsAlone();
  }
  absl::Status BackwardWeight(const Action&) override { return ForwardsAlone(); }
  absl::Status Step(const Action&) override { return ForwardsAlone(); }
  absl::StatusOr<Tensor> Gradients(absl::string_view) override { return ForwardsAlone(); }

 protected:
  PreparationModule(const GraphBatches* batches, int64_t words_in)
      : batches_(batches), words_in_(words_in) {}
  Tensor Room(Arena* arena) const {  // for a batch
    return arena->Allocate(DataType::kInt32, {batches_->batch_words()}, MemoryKind::kActivation);
  }

  const GraphBatches* const batches_;

 private:
  static absl::Status ForwardsAlone() {
    return absl::UnimplementedError("a stage that prepares has forwards alone");
  }
  virtual absl::StatusOr<Tensor> Prepare(int batch, Tensor in) = 0;

  const int64_t words_in_;
};

// A member of a split group (models/data/split_sampler.h): who owns vertices, and by batch what
// goes round before each layer, from the stage that samples to the one that trains. That is the
// host's knowledge, as sizes of an exchange are, and both stages of a member are in one process.
class SplitMembership {
 public:
  SplitMembership(const VertexOwners* owners, int member, int members)
      : owners(owners), member(member), members(members) {}
  void Put(int batch, std::vector<RowShuffle> shuffles);
  std::vector<RowShuffle> Take(int batch);

  const VertexOwners* const owners;
  const int member, members;

 private:
  std::mutex mutex_;
  std::map<int, std::vector<RowShuffle>> shuffles_;  // guarded by mutex_
};

// Takes the trainer's word, which lets it begin.
class SampleStage final : public PreparationModule {
 public:
  // The step of a batch is *first_step more than its number.
  SampleStage(const GraphBatches* batches, int member, const int64_t* first_step, Arena* arena)
      : PreparationModule(batches, 1),
        member_(member),
        first_step_(first_step),
        arena_(arena),
        sampler_(&batches->data().graph, batches->options().fanouts, batches->options().seed) {}
  // From now on a member's part of a batch, drawn with the group's other workers of the same turn.
  void SplitWith(SplitMembership* membership, TensorPeers* group);

 private:
  absl::StatusOr<Tensor> Prepare(int batch, Tensor in) override;

  const int member_;
  const int64_t* const first_step_;
  Arena* const arena_;
  NeighbourSampler sampler_;
  SplitMembership* membership_ = nullptr;
  TensorPeers* group_ = nullptr;
  std::unique_ptr<SplitMember> split_sampler_;
};

class GatherStage final : public PreparationModule {
 public:
  explicit GatherStage(const GraphBatches* batches)
      : PreparationModule(batches, batches->batch_words()) {}

 private:
  absl::StatusOr<Tensor> Prepare(int batch, Tensor in) override;
};

// To the trainer's memory: `arena` is of that. A batch that lies there stays where it is.
class MoveStage final : public PreparationModule {
 public:
  MoveStage(const GraphBatches* batches, Arena* arena)
      : PreparationModule(batches, batches->batch_words()), arena_(arena) {}

 private:
  absl::StatusOr<Tensor> Prepare(int batch, Tensor in) override;

  Arena* const arena_;
};

struct GraphTrainOptions {
  OptimizerOptions optimizer = OptimizerOptions::Adam();
  uint64_t seed = 1;  // of weights and dropout
  bool keep_logits = false;
};

// All layers of the network but the rows. Each batch has a forward, a backward and a step.
class GraphTrainStage final : public StageModule {
 public:
  // `graph` is BuildGraphNetwork's; it is not needed afterwards. `batches` and `backend` must
  // outlive the stage.
  static absl::StatusOr<std::unique_ptr<GraphTrainStage>> Create(const ModelGraph& graph,
                                                                 const GraphBatches* batches,
                                                                 Backend* backend,
                                                                 const GraphTrainOptions& options);

  // From now on a member's part of each batch: layers exchange rows with the other members'
  // trainers.
  void SplitWith(SplitMembership* membership, TensorPeers* group) {
    membership_ = membership;
    group_ = group;
  }

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                               std::vector<Tensor> output_gradients) override;
  absl::Status Step(const Action& a) override;
  absl::Status Recompute(const Action&) override { return WholePasses(); }
  absl::Status BackwardWeight(const Action&) override { return WholePasses(); }
  absl::StatusOr<Tensor> Gradients(absl::string_view parameter) override {
    return parameters_.Gradients(parameter);
  }
  TensorSpec InputSpec(int, int) const override {
    return {DataType::kInt32, {batches_->batch_words()}};
  }
  TensorSpec OutputSpec(int, int) const override { return {DataType::kInt32, {1}}; }
  int64_t library_ns() const override { return backend_->library_ns(); }

  // [batch of the run] The sum over this copy's targets, of their last forward.
  const std::map<int, double>& losses() const { return losses_; }
  // [vertex] Of the last batch's targets; GraphTrainOptions::keep_logits.
  const std::map<int32_t, std::vector<float>>& logits() const { return logits_; }
  int64_t steps() const { return steps_; }
  StageParameters& parameters() { return parameters_; }

  // Logits [targets, classes] of a sample and its rows, without dropout.
  absl::StatusOr<std::vector<float>> Evaluate(const std::vector<GraphIndex>& blocks,
                                              const Tensor& rows_SW);

 private:
  struct Batch {
    Tensor words;
    GraphTensors tensors;
    BatchView labels;
    std::unique_ptr<GraphPeers> peers;  // of a split group's member
    std::vector<Tensor> inputs;         // [layer]
    std::vector<LayerStash> stashes;
    int64_t step = 0;
  };

  GraphTrainStage(const ModelGraph& graph, const GraphBatches* batches, Backend* backend,
                  const GraphTrainOptions& options, const std::vector<int>& layers);
  static absl::Status WholePasses() {
    return absl::UnimplementedError("a graph network's stage has whole passes alone");
  }
  LayerContext ContextOf(const Batch& batch) const;
  // Waits for the device; an error of it or of the group.
  absl::Status Finish() const;
  void KeepLogits(const GraphIndex& last, const std::vector<float>& logits);

  const GraphBatches* const batches_;
  Backend* const backend_;
  const uint64_t seed_;
  const bool keep_logits_;
  SplitMembership* membership_ = nullptr;
  TensorPeers* group_ = nullptr;
  StageParameters parameters_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::map<int, Batch> in_flight_;
  std::map<int, double> losses_;
  std::map<int32_t, std::vector<float>> logits_;
  int64_t steps_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_STAGE_H_
