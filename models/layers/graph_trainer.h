// Training of a graph network (models/zoo/graph_network.h) on one member of a group: split over
// vertices, data-parallel, or alone.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto trainer, GraphTrainer::Create(graph, backend, &group, options));
//   // split: a member's part of everybody's sample
//   PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer->Step(SplitPart(sample), &sample));
//   // data-parallel or alone: a sample of the member's own
//   trainer->Step(WholePart(sample), nullptr);
//
// A step loads the rows of the part's inputs from the graph's data, each once.
// Weights are replicas: they start by name, gradients are summed over members in their order, and
// each member steps. What a member computes with are the layers of a single device.
#ifndef PIPELAB_MODELS_LAYERS_GRAPH_TRAINER_H_
#define PIPELAB_MODELS_LAYERS_GRAPH_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "models/layers/optimizer.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

// What a member computes in a step.
struct GraphPart {
  std::vector<GraphBlock> blocks;
  std::vector<int32_t> inputs;  // vertices whose rows it loads
};
GraphPart WholePart(const GraphSample& sample);
GraphPart SplitPart(const SplitSample& sample);

struct GraphTrainerOptions {
  const GraphData* data = nullptr;  // rows and labels
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  int64_t batch = 1024;  // targets of a step, of all members
};

class GraphTrainer {
 public:
  // `group`: null where there is one member. It, the backend and the data outlive the trainer.
  // InvalidArgument: a graph that is no chain of data, layers and a loss.
  static absl::StatusOr<std::unique_ptr<GraphTrainer>> Create(const ModelGraph& graph,
                                                              Backend* backend, TensorPeers* group,
                                                              const GraphTrainerOptions& options);

  // Returns the mean loss over the batch's targets, before the step. `split`: the sample that `part`
  // is of, whose rows go round; null: the part is whole. All members call it.
  absl::StatusOr<double> Step(const GraphPart& part, const SplitSample* split);
  // The last step's logits, of the member's targets.
  const std::vector<float>& logits() const { return logits_; }

 private:
  struct Value {
    Parameter parameter;
    std::vector<Tensor> state;
  };
  GraphTrainer(Backend* backend, TensorPeers* group, const GraphTrainerOptions& options)
      : backend_(backend), group_(group), options_(options) {}
  absl::Status MakeLayers(const ModelGraph& graph);
  Tensor LoadRows(const std::vector<int32_t>& vertices) const;
  void Update();
  double SumOfLosses(double own);

  Backend* const backend_;
  TensorPeers* const group_;
  const GraphTrainerOptions options_;
  std::vector<std::unique_ptr<Layer>> layers_;  // behind the data
  std::vector<Value> values_;
  std::vector<float> logits_;
  int64_t step_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GRAPH_TRAINER_H_
