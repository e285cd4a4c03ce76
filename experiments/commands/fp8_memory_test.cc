// What a step keeps under fp8 is one, whoever asks: `pipelab evaluate`, --kernels=megatron, and the
// study of published runs.
#include <algorithm>
#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "experiments/commands/step_input.h"
#include "experiments/modern/modern_prediction.h"
#include "gtest/gtest.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/status_matchers.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(std::string, cluster);
ABSL_DECLARE_FLAG(std::string, kernels);
ABSL_DECLARE_FLAG(std::string, dtype);

namespace pipelab {
namespace {

constexpr char kModel[] = "llama-2-7b", kCluster[] = "dgx-h100";

StepConfig Config() {
  return ParseStepConfig("config", "1f1b:P=4,T=2,D=2,b=1,M=8,sharding=optimizer,sequence").value();
}

GptConfig Model() {
  const auto& all = PublishedModels();
  return *std::find_if(all.begin(), all.end(), [](const auto& m) { return m.name == kModel; })->gpt;
}

Bytes OfFlags(const char* dtype) {
  absl::SetFlag(&FLAGS_model, kModel);
  absl::SetFlag(&FLAGS_cluster, kCluster);
  absl::SetFlag(&FLAGS_kernels, "megatron");
  absl::SetFlag(&FLAGS_dtype, dtype);
  const auto on = LoadModelOnCluster(Config());
  EXPECT_THAT(on, IsOk());
  return PredictStep((*on)->step(), Config())->largest_device;
}

Bytes OfRecipe(NumberType type) {
  Recipe recipe;
  recipe.model = Model();
  recipe.type = type;
  const auto on =
      ModelOnCluster::Of(*RecipeGraph(recipe), *LoadCluster("--cluster", kCluster), type);
  return PredictStep(on->step(), Config())->largest_device;
}

Bytes OfRow(NumberType type) {
  ModernStep step;
  step.model = Model();
  step.config = Config();
  step.cluster = *LoadCluster("--cluster", kCluster);
  step.type = type;
  return Predict(step)->largest_device;
}

TEST(Fp8MemoryTest, IsOneWhoeverAsks) {
  const Bytes narrow = OfFlags("fp8"), wide = OfFlags("bf16");
  EXPECT_LT(narrow, wide);
  EXPECT_EQ(OfRecipe(NumberType::kFp8), narrow);
  EXPECT_EQ(OfRow(NumberType::kFp8), narrow);
  EXPECT_EQ(OfRecipe(NumberType::kBf16), wide);
  EXPECT_EQ(OfRow(NumberType::kBf16), wide);
}

}  // namespace
}  // namespace pipelab
