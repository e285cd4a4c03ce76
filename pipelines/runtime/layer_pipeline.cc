#include "pipelines/runtime/layer_pipeline.h"

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

LayerPipeline::LayerPipeline(const ModelGraph& graph, std::vector<int> first_layers,
                             int num_micro_batches, const LayerStageOptions& options)
    : num_micro_batches_(num_micro_batches), ties_(StageTies(graph, first_layers)) {
  for (int s = 0; s < static_cast<int>(first_layers.size()); ++s) {
    const LayerRange range = StageLayers(graph, first_layers, s);
    arenas_.push_back(std::make_unique<Arena>());
    backends_.push_back(MakeCpuBackend(arenas_.back().get()));
    auto stage = LayerStage::Create(graph, range.begin, range.end, backends_.back().get(), options);
    CHECK(stage.ok()) << stage.status();
    stages_.push_back(*std::move(stage));
  }
}

void LayerPipeline::Forward(int micro_batch, bool drop) {
  std::vector<Tensor> x;
  for (int s = 0; s < num_stages(); ++s) {
    auto y =
        stages_[s]->Forward(MakeAction(ActionKind::kForward, s, micro_batch), std::move(x), drop);
    CHECK(y.ok()) << y.status();
    x = *std::move(y);
  }
  CHECK(x.empty()) << "the last stage has no output";
}

void LayerPipeline::Recompute(int micro_batch) {
  for (int s = 0; s < num_stages(); ++s) {
    const absl::Status status =
        stages_[s]->Recompute(MakeAction(ActionKind::kRecompute, s, micro_batch));
    CHECK(status.ok()) << status;
  }
}

void LayerPipeline::Backward(int micro_batch, ActionKind kind) {
  std::vector<Tensor> dy;
  for (int s = num_stages() - 1; s >= 0; --s) {
    auto dx = stages_[s]->Backward(MakeAction(kind, s, micro_batch), std::move(dy));
    CHECK(dx.ok()) << dx.status();
    dy = *std::move(dx);
  }
  CHECK(dy.empty()) << "the first stage has no input";
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
  for (const auto& [micro_batch, loss] : stages_.back()->losses()) losses.push_back(loss);
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
