#include "models/layers/graph_trainer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/factory.h"
#include "models/layers/graph_index.h"
#include "models/layers/graph_peers.h"
#include "models/layers/initialize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::vector<int32_t> LabelsOf(const GraphBlock& last, const GraphData& data) {
  std::vector<int32_t> labels;
  for (int32_t t = 0; t < last.num_targets; ++t) labels.push_back(data.labels_V[last.sources[t]]);
  return labels;
}

Tensor Zeros(const ParameterSpec& p, MemoryKind kind, Backend* backend) {
  return backend->arena().Zeros(DataType::kFloat32, Shape(p.shape.begin(), p.shape.end()), kind);
}

}  // namespace

GraphPart WholePart(const GraphSample& sample) {
  return {sample.blocks, sample.blocks.front().sources};
}

GraphPart SplitPart(const SplitSample& sample) {
  GraphPart part;
  for (const SplitBlock& split : sample.blocks) part.blocks.push_back(split.block);
  part.inputs = sample.inputs;
  return part;
}

Tensor GraphTrainer::LoadRows(const std::vector<int32_t>& vertices) const {
  const int64_t width = options_.data->width;
  Tensor rows = backend_->Allocate({static_cast<int64_t>(vertices.size()), width});
  FillOnHost<float>(rows, [&](absl::Span<float> to) {
    for (size_t i = 0; i < vertices.size(); ++i) {
      const float* const row = options_.data->rows_VW.data() + vertices[i] * width;
      std::copy_n(row, width, to.data() + static_cast<int64_t>(i) * width);
    }
  });
  return rows;
}

absl::StatusOr<std::unique_ptr<GraphTrainer>> GraphTrainer::Create(
    const ModelGraph& graph, Backend* backend, TensorPeers* group,
    const GraphTrainerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
  if (options.data == nullptr) return absl::InvalidArgumentError("a graph's training needs data");
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    if (graph.layers[i].inputs == std::vector<int>{static_cast<int>(i) - 1}) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "layer ", graph.layers[i].name, ": must have the layer before it as its only input"));
  }
  std::unique_ptr<GraphTrainer> trainer(new GraphTrainer(backend, group, options));
  PIPELAB_RETURN_IF_ERROR(trainer->MakeLayers(graph));
  return trainer;
}

absl::Status GraphTrainer::MakeLayers(const ModelGraph& graph) {
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(graph.layers[i]));
    std::vector<Parameter> parameters;
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      Value value;
      value.parameter = {Zeros(p, MemoryKind::kParameter, backend_),
                         Zeros(p, MemoryKind::kGradient, backend_)};
      InitializeTensor(p, options_.seed, value.parameter.value);
      for (size_t k = 0; k < StateNames(options_.optimizer).size(); ++k) {
        value.state.push_back(Zeros(p, MemoryKind::kOptimizer, backend_));
      }
      parameters.push_back(value.parameter);
      values_.push_back(std::move(value));
    }
    layer->SetParameters(std::move(parameters));
    layers_.push_back(std::move(layer));
  }
  return absl::OkStatus();
}

// Digits of a double in three floats, each exact, so that members add what they would in one place
// but for the last digits.
double GraphTrainer::SumOfLosses(double own) {
  if (group_ == nullptr) return own;
  const Tensor parts = backend_->arena().Allocate(DataType::kFloat32, {3}, MemoryKind::kActivation);
  std::vector<float> digits;
  for (double rest = own; digits.size() < 3; rest -= digits.back()) {
    digits.push_back(static_cast<float>(rest));
  }
  SetHostValues(parts, digits);
  group_->Sum(parts);
  double sum = 0;
  for (float d : HostValues(parts)) sum += d;
  return sum;
}

void GraphTrainer::Update() {
  for (const Value& v : values_) {
    if (group_ != nullptr) group_->Sum(v.parameter.gradient);
    OptimizerStep(options_.optimizer, step_, v.parameter.value, v.parameter.gradient, v.state,
                  backend_);
    backend_->Fill(v.parameter.gradient, 0);
  }
}

absl::StatusOr<double> GraphTrainer::Step(const GraphPart& part, const SplitSample* split) {
  const int n = static_cast<int>(layers_.size());
  std::vector<GraphIndex> blocks;
  for (const GraphBlock& block : part.blocks) blocks.push_back(MakeGraphIndex(block, backend_));
  absl::optional<GraphPeers> peers;
  if (split != nullptr && group_ != nullptr) peers.emplace(*split, group_, backend_);
  const std::vector<int32_t> labels = LabelsOf(part.blocks.back(), *options_.data);
  BatchView batch;
  batch.fields = {backend_->arena().Allocate(
      DataType::kInt32, {static_cast<int64_t>(labels.size())}, MemoryKind::kActivation)};
  SetHostIds(batch.fields[0], labels);
  double loss = 0;
  logits_.clear();
  LayerContext ctx;
  ctx.backend = backend_;
  ctx.step = step_++;
  ctx.samples = 1;
  ctx.seed = options_.seed;
  ctx.loss_scale = 1.0f / static_cast<float>(options_.batch);
  ctx.batch = &batch;
  ctx.graph = blocks;
  ctx.graph_peers = peers.has_value() ? &*peers : nullptr;
  ctx.loss_sum = &loss;
  ctx.predictions = &logits_;
  std::vector<Tensor> outputs = {LoadRows(part.inputs)};
  std::vector<LayerStash> stashes(n);
  for (int i = 0; i < n; ++i) {
    outputs.push_back(layers_[i]->Forward(ctx, {outputs[i]}, &stashes[i]));
  }
  Tensor dy;
  for (int i = n - 1; i >= 0; --i) {
    std::vector<Tensor> dx =
        layers_[i]->BackwardInput(ctx, {outputs[i]}, std::move(dy), &stashes[i]);
    layers_[i]->BackwardWeight(ctx, {outputs[i]}, &stashes[i]);
    outputs.pop_back();
    dy = std::move(dx[0]);
  }
  Update();
  loss = SumOfLosses(loss) / static_cast<double>(options_.batch);
  if (group_ != nullptr) PIPELAB_RETURN_IF_ERROR(group_->status());
  return loss;
}

}  // namespace pipelab
