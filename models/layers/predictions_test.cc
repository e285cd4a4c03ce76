// What Evaluate says a network predicts: the loss, computed here from the predictions and the
// targets alone, is the loss that it returns, for every loss layer.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kStep = 7, kFirst = 3, kPredictedSamples = 5;

std::vector<ModelGraph> Networks() {
  std::vector<ModelGraph> graphs = SmallNets(/*dropout=*/0.1, Activation::kRelu);
  graphs.push_back(*BuildGpt(SmallGpt(/*dropout=*/0.1, /*tied=*/true)));
  graphs.push_back(*BuildGpt(SmallGpt(/*dropout=*/0.1, /*tied=*/false)));
  for (GroupedModel (*build)() : {SmallAmoebaNet, SmallUNet, SmallResNet}) {
    graphs.push_back(build().graph);
  }
  return graphs;
}

// -log softmax(logits)[target], and 0 where there is no target.
double CrossEntropyOf(absl::Span<const float> logits, int32_t target) {
  if (target < 0) return 0;
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - logits[target]);
  return std::log(sum);
}

// The mean over the targets of kPredictedSamples samples, and how many predictions that took.
double LossOf(const LayerSpec& loss, const BatchSource& data, absl::Span<const float> predictions,
              size_t* used) {
  const int field = data.FindField(kTargets);
  const size_t targets = kPredictedSamples * data.targets_per_sample();
  double sum = 0;
  if (loss.kind == kElementLoss) {
    std::vector<float> t(targets);
    data.FillFloats(field, kStep, kFirst, absl::MakeSpan(t));
    const bool squared =
        Attribute(loss, "loss") == static_cast<int>(ElementLossKind::kSquaredError);
    for (size_t i = 0; i < targets && i < predictions.size(); ++i) {
      const double z = predictions[i];
      sum += squared ? (z - t[i]) * (z - t[i]) : std::log1p(std::exp(z)) - t[i] * z;
    }
    *used = targets;
  } else {
    std::vector<int32_t> t(targets);
    data.FillIds(field, kStep, kFirst, absl::MakeSpan(t));
    const size_t classes = data.Field(kTargets).limit;
    for (size_t i = 0; i < targets && (i + 1) * classes <= predictions.size(); ++i) {
      sum += CrossEntropyOf(predictions.subspan(i * classes, classes), t[i]);
    }
    *used = targets * classes;
  }
  return sum / static_cast<double>(targets);
}

TEST(Predictions, GiveTheLossOfTheEvaluation) {
  std::set<std::string> kinds;
  for (const ModelGraph& graph : Networks()) {
    SCOPED_TRACE(graph.name);
    const LayerSpec& loss = graph.layers[LossLayer(graph)];
    kinds.insert(loss.kind == kElementLoss ? absl::StrCat(loss.kind, Attribute(loss, "loss"))
                                           : loss.kind);
    const RandomData data(TestFieldsOf(graph));
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    SerialOptions options;
    options.micro_batch_size = 2;
    options.data = &data;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                                 SerialTrainer::Create(graph, backend.get(), options));
    for (int i = 0; i < 2; ++i) ASSERT_THAT(trainer->Step(), IsOk());
    std::vector<float> predictions = {42};  // others' stay
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const double evaluated,
        trainer->Evaluate(data, kStep, kFirst, kPredictedSamples, &predictions));
    EXPECT_EQ(trainer->Evaluate(data, kStep, kFirst, kPredictedSamples).value(), evaluated);
    EXPECT_EQ(predictions[0], 42);
    size_t used = 0;
    // Sums in double of terms in float, over at most 11 classes.
    EXPECT_NEAR(LossOf(loss, data, absl::MakeSpan(predictions).subspan(1), &used), evaluated,
                1e-5 * (1 + evaluated));
    EXPECT_EQ(predictions.size(), 1 + used);
  }
  EXPECT_EQ(kinds,
            (std::set<std::string>{kClassifier, kGptHead, "element_loss0", "element_loss1"}));
}

}  // namespace
}  // namespace pipelab
