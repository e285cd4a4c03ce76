#include "experiments/calibration/launch_time.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/specs/data_input_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/relu_spec.h"
#include "tools/base/clocks.h"

namespace pipelab {
namespace {

constexpr int64_t kNumbers = 16;
constexpr int kActivations = 48;
constexpr int kOperations = 2 * kActivations + 3;  // forward and backward, with data and loss
constexpr int kTurns = 20;

ModelGraph Activations() {
  ModelGraph graph;
  graph.name = "activations";
  graph.layers.push_back(DataInputSpec({"data", "numbers", {kNumbers}}));
  for (int i = 0; i < kActivations; ++i) {
    graph.layers.push_back(ReluSpec({absl::StrCat("relu", i), i, {1, kNumbers}}));
  }
  ElementLossSizes loss;
  loss.name = "loss";
  loss.input = kActivations;
  loss.width = kNumbers;
  graph.layers.push_back(ElementLossSpec(loss));
  return graph;
}

}  // namespace

LaunchProbe::LaunchProbe()
    : graph_(Activations()),
      data_(FieldsOf(graph_), /*samples=*/1, /*seed=*/1),
      backend_(MakeCpuBackend(&arena_)) {
  LayerStageOptions options;
  options.data = &data_;
  options.batch_tokens = data_.targets_per_sample();
  auto stage = LayerStage::Create(graph_, 0, static_cast<int>(graph_.layers.size()), backend_.get(),
                                  options);
  CHECK(stage.ok()) << stage.status();
  stage_ = *std::move(stage);
}

void LaunchProbe::Turn() {
  Action action{};
  action.kind = ActionKind::kForward;
  const auto outputs = stage_->Forward(action, {}, /*drop=*/false);
  CHECK(outputs.ok()) << outputs.status();
  action.kind = ActionKind::kBackward;
  const auto gradients = stage_->Backward(action, {});
  CHECK(gradients.ok()) << gradients.status();
}

double LaunchProbe::KernelSeconds() {
  const Tensor x = arena_.Zeros(DataType::kFloat32, {1, kNumbers}, MemoryKind::kActivation);
  constexpr int kCalls = 1000;
  const int64_t begin = ThreadCpuNs();
  for (int i = 0; i < kCalls; ++i) backend_->Relu(x, x);
  return static_cast<double>(ThreadCpuNs() - begin) * 1e-9 / kCalls;
}

double LaunchProbe::Measure() {
  Turn();
  const int64_t begin = ThreadCpuNs();
  for (int i = 0; i < kTurns; ++i) Turn();
  const double seconds = static_cast<double>(ThreadCpuNs() - begin) * 1e-9 / (kTurns * kOperations);
  return std::max(seconds - KernelSeconds(), 1e-9);
}

}  // namespace pipelab
