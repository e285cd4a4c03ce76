// The gradient of the whole loss of models that are DAGs, as the serial trainer adds it up over
// consumers and micro-batches, against finite differences of the loss: every parameter.
//
// As in layer_gradient_test.cc, the derivative along a direction u is <gradient, u>, compared with
// D* = (4 D(h) - D(2h)) / 3; the tolerance is |D(h) - D(2h)| and the rounding of the loss over h,
// both measured.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_graphs.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kGraphSamples = 2;
constexpr int kGraphMicroBatches = 2;

class GraphGradient {
 public:
  GraphGradient(const ModelGraph& graph, std::vector<int> stage_of_layer)
      : graph_(graph), data_(TestFieldsOf(graph)), backend_(MakeReferenceBackend(&arena_)) {
    SerialOptions options;
    options.micro_batch_size = kGraphSamples;
    options.num_micro_batches = kGraphMicroBatches;
    options.data = &data_;
    options.stage_of_layer = std::move(stage_of_layer);
    trainer_ = *SerialTrainer::Create(graph, backend_.get(), options);
  }

  void Run() {
    RandomizeParameters();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto gradients, trainer_->LossGradients());
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.parameters) Check(p.name, gradients.at(ValueName(p)));
    }
    // Where rounding hides the derivative the comparison says nothing: that must be the exception.
    EXPECT_GT(telling_, 0.8 * checked_);
  }

 private:
  double Loss() {
    return *trainer_->Evaluate(data_, /*step=*/0, 0, kGraphSamples * kGraphMicroBatches);
  }

  // Away from the start, where biases are 0 and gammas 1; large enough that each matters.
  void RandomizeParameters() {
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        const CounterRng rng(5, p.name);
        std::vector<float> value(p.size());
        for (int64_t i = 0; i < p.size(); ++i) {
          value[i] = 0.3f * rng.Normal(i) + (p.init == InitKind::kOnes ? 1.0f : 0.0f);
        }
        ASSERT_THAT(trainer_->SetParameterValue(p.name, value), IsOk());
      }
    }
  }

  double Difference(const std::string& name, const std::vector<float>& saved,
                    const std::vector<float>& u, double h) {
    const auto at = [&](double sign) {
      std::vector<float> moved(saved);
      for (size_t i = 0; i < moved.size(); ++i) {
        moved[i] = static_cast<float>(saved[i] + sign * h * u[i]);
      }
      EXPECT_THAT(trainer_->SetParameterValue(name, moved), IsOk());
      return Loss();
    };
    const double difference = (at(1) - at(-1)) / (2 * h);
    EXPECT_THAT(trainer_->SetParameterValue(name, saved), IsOk());
    return difference;
  }

  void Check(const std::string& name, const std::vector<float>& gradient) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> saved, trainer_->ParameterValue(name));
    const CounterRng rng(6, name);
    std::vector<float> u(saved.size());
    double along = 0, squares = 0;
    for (size_t i = 0; i < u.size(); ++i) {
      u[i] = rng.Normal(i);
      along += double{gradient[i]} * u[i];
      squares += std::pow(double{gradient[i]}, 2);
    }
    // At 0.004 and 0.008 a loss that bends may have the same difference, and the measured tolerance
    // none of its error.
    const double h = 0.002;
    const double once = Difference(name, saved, u, h), twice = Difference(name, saved, u, 2 * h);
    const double tolerance =
        std::abs(once - twice) + 8 * std::numeric_limits<float>::epsilon() * Loss() / h;
    EXPECT_NEAR((4 * once - twice) / 3, along, tolerance) << name;
    ++checked_;
    telling_ += tolerance < 0.1 * std::sqrt(squares);
  }

  const ModelGraph& graph_;
  const RandomData data_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SerialTrainer> trainer_;
  int checked_ = 0, telling_ = 0;
};

TEST(GraphGradient, AgreesWithFiniteDifferences) {
  for (int seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ModelGraph graph = RandomGraph(7 + seed, seed, /*dropout=*/0);
    GraphGradient(graph, {}).Run();
  }
}

// Summed stage by stage it is the same gradient.
TEST(GraphGradient, AgreesInStagesToo) {
  const ModelGraph graph = RandomGraph(11, 9, /*dropout=*/0);
  GraphGradient(graph, RandomStages(graph, 4, 9)).Run();
}

TEST(GraphGradient, OfSmallNetsAgreesWithFiniteDifferences) {
  // ReLUs have kinks, which differences do not see; their gradient is in layer_test.cc.
  for (ModelGraph& graph : SmallNets(/*dropout=*/0, Activation::kGelu)) {
    SCOPED_TRACE(graph.name);
    for (LayerSpec& layer : graph.layers) {  // the loss does not have a balancing loss
      if (layer.attributes.count("balance") > 0) layer.attributes["balance"] = 0;
    }
    GraphGradient(graph, {}).Run();
  }
}

}  // namespace
}  // namespace pipelab
