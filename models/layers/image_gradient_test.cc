// The gradient of the whole loss of small networks of images, with batch normalisation by each
// micro-batch's statistics, against finite differences of the loss: layer by layer.
//
// As in graph_gradient_test.cc, but losses are those of training, and the direction is half the
// gradient's own and half chance: what passes many norms is small, and would drown in rounding
// along a random one. ReLUs have kinks, which show as errors of first order in h wherever a value
// changes its sign; so norms get betas of several times their gammas, and a channel is all above
// zero or all below.
// A maximum that passes from pixel to pixel is such a kink, too: 0.02 of the derivative.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kImageSamples = 3;
constexpr int kImageMicroBatches = 2;

class ImageGradient {
 public:
  explicit ImageGradient(const ModelGraph& graph)
      : graph_(graph), data_(TestFieldsOf(graph)), backend_(MakeReferenceBackend(&arena_)) {
    SerialOptions options;
    options.micro_batch_size = kImageSamples;
    options.num_micro_batches = kImageMicroBatches;
    options.data = &data_;
    trainer_ = *SerialTrainer::Create(graph, backend_.get(), options);
  }

  // Every `stride`th layer with parameters.
  void Run(int stride) {
    AwayFromKinks();
    PIPELAB_ASSERT_OK_AND_ASSIGN(gradients_, trainer_->LossGradients());
    int count = 0;
    for (const LayerSpec& layer : graph_.layers) {
      if (!layer.parameters.empty() && count++ % stride == 0) Check(layer);
    }
    std::printf("%s: %d layers, of %d the derivative says something\n", graph_.name.c_str(),
                checked_, telling_);
    EXPECT_GT(telling_, 0.5 * checked_);
  }

 private:
  // The loss of training: with the micro-batches' own statistics.
  double Loss() {
    EXPECT_THAT(trainer_->LossGradients(), IsOk());
    const std::vector<double>& losses = trainer_->losses();
    return std::accumulate(losses.begin(), losses.end(), 0.0) /
           static_cast<double>(kImageSamples * kImageMicroBatches * data_.targets_per_sample());
  }

  void AwayFromKinks() {
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        const CounterRng rng(5, p.name);
        PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<float> value, trainer_->ParameterValue(p.name));
        for (size_t i = 0; i < value.size(); ++i) {
          if (absl::EndsWith(p.name, "/gamma")) value[i] = 0.7f + 0.1f * rng.Normal(i);
          if (absl::EndsWith(p.name, "/beta")) value[i] = rng.Uniform(i) < 0.9 ? 4 : -4;
          if (layer.kind == "classifier") value[i] = 0.3f * rng.Normal(i);
        }
        ASSERT_THAT(trainer_->SetParameterValue(p.name, value), IsOk());
      }
    }
  }

  using Values = std::vector<std::vector<float>>;  // [parameter of the layer]

  double LossAt(const LayerSpec& layer, const Values& at, const Values& u, double step) {
    for (size_t k = 0; k < at.size(); ++k) {
      std::vector<float> moved(at[k]);
      for (size_t i = 0; i < moved.size(); ++i) {
        moved[i] = static_cast<float>(at[k][i] + step * u[k][i]);
      }
      EXPECT_THAT(trainer_->SetParameterValue(layer.parameters[k].name, moved), IsOk());
    }
    return Loss();
  }

  // The gradient and chance in equal parts, of the length of the parameter.
  std::vector<float> Direction(const std::string& name, const std::vector<float>& value) const {
    const std::vector<float>& gradient = gradients_.at(name);
    const CounterRng rng(6, name);
    const auto norm = [](const std::vector<float>& x) {
      return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 1e-30));
    };
    std::vector<float> u(value.size());
    for (size_t i = 0; i < u.size(); ++i) u[i] = rng.Normal(i);
    const double chance = norm(u), own = norm(gradient);
    const double length = std::max(norm(value), 0.1);
    for (size_t i = 0; i < u.size(); ++i) {
      u[i] = static_cast<float>(length * 0.7 * (u[i] / chance + gradient[i] / own));
    }
    return u;
  }

  void Check(const LayerSpec& layer) {
    Values saved, u;
    double along = 0;
    for (const ParameterSpec& p : layer.parameters) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<float> value, trainer_->ParameterValue(p.name));
      u.push_back(Direction(p.name, value));
      saved.push_back(std::move(value));
      const std::vector<float>& gradient = gradients_.at(p.name);
      along += std::inner_product(gradient.begin(), gradient.end(), u.back().begin(), 0.0);
    }
    const double h = 0.004;
    const auto difference = [&](double step) {
      return (LossAt(layer, saved, u, step) - LossAt(layer, saved, u, -step)) / (2 * step);
    };
    const double once = difference(h), twice = difference(2 * h);
    const double loss = LossAt(layer, saved, u, 0);
    const double tolerance = 2 * std::abs(once - twice) + 0.02 * std::abs(along) +
                             8 * std::numeric_limits<float>::epsilon() * loss / h;
    EXPECT_NEAR((4 * once - twice) / 3, along, tolerance) << layer.name;
    ++checked_;
    telling_ += tolerance < 0.1 * std::abs(along);
  }

  const ModelGraph& graph_;
  const RandomData data_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SerialTrainer> trainer_;
  std::map<std::string, std::vector<float>> gradients_;
  int checked_ = 0, telling_ = 0;
};

TEST(ImageGradient, OfAmoebaNetAgreesWithFiniteDifferences) {
  const GroupedModel model = SmallAmoebaNet();
  ImageGradient(model.graph).Run(4);
}

TEST(ImageGradient, OfUNetAgreesWithFiniteDifferences) {
  const GroupedModel model = SmallUNet();
  ImageGradient(model.graph).Run(1);
}

TEST(ImageGradient, OfResNetAgreesWithFiniteDifferences) {
  const GroupedModel model = SmallResNet();
  ImageGradient(model.graph).Run(1);
}

}  // namespace
}  // namespace pipelab
