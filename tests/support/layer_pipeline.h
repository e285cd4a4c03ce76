// A pipeline of LayerStages driven by hand, for tests: plain loops, no schedule, executor or
// messages.
//
//   LayerPipeline p(graph, {0, 3}, 4, options);     // two stages, an arena and a CPU backend each
//   LayerPipeline q(graph, partition, 4, options);  // any stages
//   std::vector<double> losses = p.Step();          // by micro-batch
#ifndef PIPELAB_TESTS_SUPPORT_LAYER_PIPELINE_H_
#define PIPELAB_TESTS_SUPPORT_LAYER_PIPELINE_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/tensor/arena.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// How a step goes through its micro-batches. All give the same bits.
enum class DriveOrder {
  kOneByOne,       // F B of each micro-batch
  kAllForward,     // all F, then all B in the order of micro-batches
  kRecompute,      // as kAllForward, with forwards that drop their activations
  kSplitBackward,  // all F, then all I, then all W
};

class LayerPipeline {
 public:
  LayerPipeline(const ModelGraph& graph, ModelPartition partition, int num_micro_batches,
                const LayerStageOptions& options);
  LayerPipeline(const ModelGraph& graph, std::vector<int> first_layers, int num_micro_batches,
                const LayerStageOptions& options);

  std::vector<double> Step(DriveOrder order);
  int num_stages() const { return static_cast<int>(stages_.size()); }
  LayerStage& stage(int s) { return *stages_[s]; }
  Arena& arena(int s) { return *arenas_[s]; }
  // By name, from the one stage that holds it: CHECKed.
  std::vector<float> Value(const std::string& parameter, StateKind kind = StateKind::kValue);

 private:
  void Forward(int micro_batch, bool drop);
  void Recompute(int micro_batch);
  void Backward(int micro_batch, ActionKind kind);
  void Weights(int micro_batch);
  void SumTies();

  // Tensors on their way, by edge.
  std::vector<Tensor> Take(const std::vector<int>& edges);
  void Put(const std::vector<int>& edges, std::vector<Tensor> tensors);

  ModelPartition partition_;
  int num_micro_batches_;
  std::vector<Tensor> on_edge_;
  std::vector<Tie> ties_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<LayerStage>> stages_;
};

// An action of a stage, without slices and versions.
Action MakeAction(ActionKind kind, int stage, int micro_batch);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_LAYER_PIPELINE_H_
