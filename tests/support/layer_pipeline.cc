#include "tests/support/layer_pipeline.h"

#include <utility>

#include "glog/logging.h"
#include "kernels/cpu/cpu_backend.h"

namespace pipelab {

Action MakeAction(ActionKind kind, int stage, int micro_batch) {
  Action a;
  a.kind = kind;
  a.stage = static_cast<int16_t>(stage);
  a.micro_batch = micro_batch;
  return a;
}

LayerPipeline::LayerPipeline(const ModelGraph& graph, ModelPartition partition,
                             int num_micro_batches, const LayerStageOptions& options)
    : partition_(std::move(partition)),
      num_micro_batches_(num_micro_batches),
      on_edge_(partition_.stages.edges.size()),
      ties_(StageTies(graph, partition_)) {
  for (int s = 0; s < partition_.num_stages(); ++s) {
    arenas_.push_back(std::make_unique<Arena>());
    backends_.push_back(MakeCpuBackend(arenas_.back().get()));
    auto stage = LayerStage::Create(graph, partition_, s, backends_.back().get(), options);
    CHECK(stage.ok()) << stage.status();
    stages_.push_back(*std::move(stage));
  }
}

LayerPipeline::LayerPipeline(const ModelGraph& graph, std::vector<int> first_layers,
                             int num_micro_batches, const LayerStageOptions& options)
    : LayerPipeline(graph, MakeRangePartition(graph, first_layers).value(), num_micro_batches,
                    options) {}

std::vector<Tensor> LayerPipeline::Take(const std::vector<int>& edges) {
  std::vector<Tensor> tensors;
  for (int e : edges) {
    CHECK(!on_edge_[e].empty()) << "edge " << e << " carries nothing";
    tensors.push_back(std::move(on_edge_[e]));
  }
  return tensors;
}

void LayerPipeline::Put(const std::vector<int>& edges, std::vector<Tensor> tensors) {
  CHECK_EQ(edges.size(), tensors.size());
  for (size_t i = 0; i < edges.size(); ++i) on_edge_[edges[i]] = std::move(tensors[i]);
}

void LayerPipeline::Forward(int micro_batch, bool drop) {
  for (int s = 0; s < num_stages(); ++s) {
    auto y = stages_[s]->Forward(MakeAction(ActionKind::kForward, s, micro_batch),
                                 Take(partition_.stages.in_edges[s]), drop);
    CHECK(y.ok()) << y.status();
    Put(partition_.stages.out_edges[s], *std::move(y));
  }
}

void LayerPipeline::Recompute(int micro_batch) {
  for (int s = 0; s < num_stages(); ++s) {
    const absl::Status status =
        stages_[s]->Recompute(MakeAction(ActionKind::kRecompute, s, micro_batch));
    CHECK(status.ok()) << status;
  }
}

void LayerPipeline::Backward(int micro_batch, ActionKind kind) {
  for (int s = num_stages() - 1; s >= 0; --s) {
    auto dx = stages_[s]->Backward(MakeAction(kind, s, micro_batch),
                                   Take(partition_.stages.out_edges[s]));
    CHECK(dx.ok()) << dx.status();
    Put(partition_.stages.in_edges[s], *std::move(dx));
  }
}

void LayerPipeline::Weights(int micro_batch) {
  for (int s = 0; s < num_stages(); ++s) {
    const absl::Status status =
        stages_[s]->BackwardWeight(MakeAction(ActionKind::kBackwardWeight, s, micro_batch));
    CHECK(status.ok()) << status;
  }
}

// What Lower's reductions do: stages in order, the same sum everywhere.
void LayerPipeline::SumTies() {
  for (const Tie& tie : ties_) {
    std::vector<Tensor> gradients;
    for (int s : tie.stages) {
      auto g = stages_[s]->Gradients(tie.parameter);
      CHECK(g.ok()) << g.status();
      gradients.push_back(*std::move(g));
    }
    for (int64_t i = 0; i < gradients[0].size(); ++i) {
      float sum = gradients[0].f32()[i];
      for (size_t k = 1; k < gradients.size(); ++k) sum += gradients[k].f32()[i];
      for (Tensor& g : gradients) g.f32()[i] = sum;
    }
  }
}

std::vector<double> LayerPipeline::Step(DriveOrder order) {
  const int n = num_micro_batches_;
  for (int m = 0; m < n; ++m) {
    Forward(m, order == DriveOrder::kRecompute);
    if (order == DriveOrder::kOneByOne) Backward(m, ActionKind::kBackward);
  }
  for (int m = 0; m < n && order != DriveOrder::kOneByOne; ++m) {
    if (order == DriveOrder::kRecompute) Recompute(m);
    Backward(m, order == DriveOrder::kSplitBackward ? ActionKind::kBackwardInput
                                                    : ActionKind::kBackward);
  }
  for (int m = 0; m < n && order == DriveOrder::kSplitBackward; ++m) Weights(m);
  SumTies();
  for (int s = 0; s < num_stages(); ++s) {
    const absl::Status status = stages_[s]->Step(MakeAction(ActionKind::kStep, s, 0));
    CHECK(status.ok()) << status;
  }
  std::vector<double> losses;
  for (const auto& [micro_batch, loss] : stages_[partition_.loss_stage]->losses())
    losses.push_back(loss);
  return losses;
}

std::vector<float> LayerPipeline::Value(const std::string& parameter, StateKind kind) {
  std::vector<float> value;
  for (const auto& stage : stages_) {
    const auto copy = stage->parameters().Copy(parameter, kind);
    if (!copy.ok()) continue;
    CHECK(value.empty()) << parameter << " is in two stages";
    value = *copy;
  }
  CHECK(!value.empty()) << parameter << " is in no stage";
  return value;
}

}  // namespace pipelab
