// Whole layers against finite differences: the input's gradient and every parameter's.
//
// For a direction u, the derivative of L = sum(weight * y) (or the loss) along u is <gradient, u>.
// It is compared with D* = (4 D(h) - D(2h)) / 3, D(h) = (L(+h) - L(-h)) / 2h, whose error is
//   truncation: of the order h^4; |D(h) - D(2h)|, of the order h^2, is an upper bound where h is
//   small; rounding: each y carries a few float32 epsilons, of random sign; an L has epsilon *
//   |weight * y| of them,
//     which the difference divides by h.
// Both are measured, so nothing is tuned; the test also demands that the tolerance is small beside
// the derivative.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/test_graphs.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_specs.h"
#include "models/specs/dense_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/pool_spec.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class GradientCheck {
 public:
  explicit GradientCheck(const LayerSpec& spec)
      : backend_(MakeReferenceBackend(&arena_)), rig_(spec, backend_.get(), kSamples) {
    inputs_ = RandomInputs(spec, backend_.get(), kSamples);
    if (HasKinks(spec)) {
      for (const Tensor& x : inputs_) Spread(x);
    }
    if (!spec.output_shape.empty()) {
      weight_ = RandomTensor(backend_.get(), RowsOf(spec.output_shape, kSamples), "weight", 1);
    }
  }

  void Run() {
    LayerStash stash;
    Forward(&stash);
    Tensor dy =
        weight_.empty() ? Tensor() : RandomTensor(backend_.get(), weight_.shape(), "weight", 1);
    const std::vector<Tensor> dx =
        rig_.layer->BackwardInput(rig_.ctx, inputs_, std::move(dy), &stash);
    rig_.layer->BackwardWeight(rig_.ctx, inputs_, &stash);
    // The gradient of a loss carries the scale; the objective is the plain sum.
    const double scale = weight_.empty() ? rig_.ctx.loss_scale : 1;
    ASSERT_EQ(dx.size(), inputs_.size());
    for (size_t k = 0; k < dx.size(); ++k) {
      CheckTensor("x" + std::to_string(k), inputs_[k], dx[k], scale);
    }
    for (size_t i = 0; i < rig_.parameters.size(); ++i) {
      CheckTensor(rig_.spec.parameters[i].name, rig_.parameters[i].value,
                  rig_.parameters[i].gradient, scale);
    }
  }

 private:
  static constexpr int64_t kSamples = 2;

  // No step of a difference may take a value over 0, or past another where a maximum is looked for:
  // values go away from 0, or become steps of 0.1 in the same order.
  void Spread(const Tensor& x) const {
    if (rig_.spec.kind != kPool) {
      for (float& value : x.f32()) value += value > 0 ? 0.2f : -0.2f;
      return;
    }
    std::vector<int64_t> order(x.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(),
              [&x](int64_t a, int64_t b) { return x.f32()[a] < x.f32()[b]; });
    for (size_t rank = 0; rank < order.size(); ++rank) {
      x.f32()[order[rank]] =
          0.1f * (static_cast<float>(rank) - 0.5f * static_cast<float>(x.size()));
    }
  }

  Tensor Forward(LayerStash* stash) {
    rig_.loss = 0;
    return rig_.layer->Forward(rig_.ctx, inputs_, stash);
  }

  double Objective() {
    LayerStash stash;
    const Tensor y = Forward(&stash);
    if (weight_.empty()) {
      magnitude_ = std::abs(rig_.loss);
      return rig_.loss;
    }
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      const double term = static_cast<double>(weight_.f32()[i]) * y.f32()[i];
      sum += term;
      squares += term * term;
    }
    magnitude_ = std::sqrt(squares);
    return sum;
  }

  // D(h) along `direction`; leaves `t` as it was.
  double Difference(const Tensor& t, const Tensor& saved, const Tensor& direction, double h) {
    const auto at = [&](double sign) {
      for (int64_t i = 0; i < t.size(); ++i) {
        t.f32()[i] = static_cast<float>(saved.f32()[i] + sign * h * direction.f32()[i]);
      }
      return Objective();
    };
    const double difference = (at(1) - at(-1)) / (2 * h);
    backend_->Copy(saved, t);
    return difference;
  }

  void CheckTensor(const std::string& name, const Tensor& t, const Tensor& gradient, double scale) {
    const Tensor saved = backend_->Allocate(t.shape());
    backend_->Copy(t, saved);
    for (int trial = 0; trial < 4; ++trial) {
      const Tensor u = RandomTensor(backend_.get(), t.shape(), name + std::to_string(trial), 1);
      double along = 0, norm = 0;
      for (int64_t i = 0; i < t.size(); ++i) {
        along += static_cast<double>(gradient.f32()[i]) / scale * u.f32()[i];
        norm += std::pow(gradient.f32()[i] / scale, 2);
      }
      norm = std::sqrt(norm);  // the derivative's typical size
      const double h = 0.004;
      const double once = Difference(t, saved, u, h), twice = Difference(t, saved, u, 2 * h);
      const double epsilon = std::numeric_limits<float>::epsilon();
      const double tolerance = std::abs(once - twice) + 8 * epsilon * magnitude_ / h;
      EXPECT_NEAR((4 * once - twice) / 3, along, tolerance) << name << ", direction " << trial;
      EXPECT_LT(tolerance, 0.02 * norm) << name << ": the check says nothing";
    }
  }

  Arena arena_;
  std::unique_ptr<Backend> backend_;
  LayerRig rig_;
  std::vector<Tensor> inputs_;
  Tensor weight_;
  double magnitude_ = 0;
};

class LayerGradient : public testing::TestWithParam<double> {};

TEST_P(LayerGradient, AgreesWithFiniteDifferences) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph graph, BuildGpt(SmallGpt(GetParam(), false)));
  for (const char* name : {"embedding", "block0/attention", "block0/mlp", "head"}) {
    for (const LayerSpec& spec : graph.layers) {
      if (spec.name == name) GradientCheck(spec).Run();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dropout, LayerGradient, testing::Values(0.0, 0.25));

// All but ReLUs, which have kinks: layer_test.cc.
TEST(LayerGradient, OfJoinsAgreesWithFiniteDifferences) {
  for (const LayerSpec& spec : JoinLayers()) {
    SCOPED_TRACE(spec.name);
    if (spec.kind == kDense && ActivationOf(spec) == Activation::kRelu) continue;
    GradientCheck(spec).Run();
  }
}

TEST(LayerGradient, OfOtherNetsAgreesWithFiniteDifferences) {
  for (const LayerSpec& spec : NetLayers()) {
    SCOPED_TRACE(spec.name);
    GradientCheck(spec).Run();
  }
}

// But a bias in front of a norm, which has no gradient, and a ReLU of the data, which does not move
// (and is not away from its kink: it need not be).
TEST(LayerGradient, OfImagesAgreesWithFiniteDifferences) {
  for (const LayerSpec& spec : ImageLayers()) {
    if (spec.kind == kImageConv && ImageConvSizesOf(spec).norm && ImageConvSizesOf(spec).bias) {
      continue;
    }
    SCOPED_TRACE(spec.name);
    GradientCheck(spec).Run();
  }
}

}  // namespace
}  // namespace pipelab
