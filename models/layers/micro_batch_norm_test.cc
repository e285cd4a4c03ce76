// Running statistics: of the whole mini-batch, whatever the order of its micro-batches and however
// often a forward was computed; and what evaluation makes of them.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/test_layers.h"
#include "models/specs/batch_norm_spec.h"

namespace pipelab {
namespace {

using MakeBackend = std::unique_ptr<Backend> (*)(Arena*);

constexpr int64_t kNormRows = 5, kChannels = 3, kNormSamples = 2;

LayerSpec Norm() { return BatchNormSpec({"norm", 0, kNormRows, kChannels}); }

// A rig whose statistics can be looked at.
class Statistics {
 public:
  explicit Statistics(MakeBackend make)
      : backend_(make(&arena_)), rig_(Norm(), backend_.get(), kNormSamples) {
    for (float start : {0.0f, 1.0f}) {
      running_.push_back(backend_->Allocate({kChannels}, MemoryKind::kParameter));
      backend_->Fill(running_.back(), start);
    }
    rig_.layer->SetStatistics(running_);
  }

  Tensor Input(int micro_batch) {
    return RandomTensor(backend_.get(), {kNormSamples * kNormRows, kChannels},
                        "x" + std::to_string(micro_batch), 2);
  }
  void Forward(int micro_batch, LayerStash* stash) {
    rig_.ctx.first_sample = micro_batch * kNormSamples;
    rig_.layer->Forward(rig_.ctx, {Input(micro_batch)}, stash);
  }
  void Train(int micro_batch) {
    LayerStash stash;
    Forward(micro_batch, &stash);
    Tensor dy = Input(micro_batch);
    rig_.layer->BackwardInput(rig_.ctx, {Input(micro_batch)}, std::move(dy), &stash);
    rig_.layer->BackwardWeight(rig_.ctx, {}, &stash);
  }
  void EndStep() { rig_.layer->EndStep(backend_.get()); }
  std::vector<float> Values() const {
    std::vector<float> values;
    for (const Tensor& t : running_) values.insert(values.end(), t.f32().begin(), t.f32().end());
    return values;
  }
  std::vector<float> Evaluate(int micro_batch) {
    rig_.ctx.training = false;
    LayerStash stash;
    const Tensor x = Input(micro_batch);
    const Tensor y = rig_.layer->Forward(rig_.ctx, {x}, &stash);
    EXPECT_TRUE(stash.tensors.empty());
    const Tensor again = Input(micro_batch);  // inputs are not written to
    EXPECT_EQ(std::vector<float>(x.f32().begin(), x.f32().end()),
              std::vector<float>(again.f32().begin(), again.f32().end()));
    return {y.f32().begin(), y.f32().end()};
  }
  float Parameter(int index, int64_t channel) const {
    return rig_.parameters[index].value.f32()[channel];
  }

 private:
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  LayerRig rig_;
  std::vector<Tensor> running_;
};

class RunningStatisticsTest : public testing::TestWithParam<MakeBackend> {};

TEST_P(RunningStatisticsTest, AreOfTheWholeMiniBatch) {
  Statistics layer(GetParam());
  for (int i : {0, 1, 2}) layer.Train(i);
  layer.EndStep();
  const std::vector<float> running = layer.Values();
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0, squares = 0;
    const double n = 3.0 * kNormSamples * kNormRows;
    for (int pass = 0; pass < 2; ++pass) {
      const double mean = sum / n;
      for (int i : {0, 1, 2}) {
        const Tensor x = layer.Input(i);
        for (int64_t r = 0; r < kNormSamples * kNormRows; ++r) {
          const double value = x.f32()[r * kChannels + c];
          if (pass == 0) sum += value;
          if (pass == 1) squares += (value - mean) * (value - mean);
        }
      }
    }
    EXPECT_NEAR(running[c], 0.1 * sum / n, 1e-6);
    EXPECT_NEAR(running[kChannels + c], 0.9 + 0.1 * squares / n, 1e-6);
  }
}

TEST_P(RunningStatisticsTest, DoNotDependOnTheSchedule) {
  Statistics serial(GetParam());
  for (int i : {0, 1, 2, 3}) serial.Train(i);
  serial.EndStep();
  Statistics other(GetParam());
  LayerStash dropped;
  for (int i : {3, 1, 2, 0}) {
    other.Forward(i, &dropped);  // computed again by Train
    dropped.tensors.clear();
  }
  for (int i : {2, 0, 3, 1}) other.Train(i);
  other.EndStep();
  EXPECT_EQ(serial.Values(), other.Values());
  // A step without micro-batches, or with forwards alone, changes nothing.
  other.Forward(0, &dropped);
  other.EndStep();
  EXPECT_EQ(serial.Values(), other.Values());
  dropped.tensors.clear();
}

TEST_P(RunningStatisticsTest, AreWhatEvaluationNormalisesBy) {
  Statistics layer(GetParam());
  layer.Train(0);
  layer.EndStep();
  const std::vector<float> running = layer.Values(), y = layer.Evaluate(7);
  const Tensor x = layer.Input(7);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) % kChannels;
    const double normal = (x.f32()[i] - running[c]) / std::sqrt(running[kChannels + c] + 1e-5);
    EXPECT_NEAR(y[i], normal * layer.Parameter(0, c) + layer.Parameter(1, c), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RunningStatisticsTest,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab
