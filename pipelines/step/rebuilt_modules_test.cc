// What recomputation of parts of blocks costs and saves.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_model.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Parts of a block that are rebuilt give memory for time, and no two of them are the same.
TEST(RebuiltModules, GiveMemoryForTime) {
  GptConfig gpt = LlamaConfig(8, 2048, 16, 5632, 2048, 8192);
  const ClusterSpec cluster = LoadCluster("--cluster", "dgx-h100").value();
  const auto on = [&](const ModelGraph& graph) {
    return ModelOnCluster::Of(graph, cluster, NumberType::kBf16);
  };
  const auto megatron = [](const GptConfig& config, AttentionImplementation attention) {
    return MegatronGraph(BuildGpt(config).value(), attention, NumberType::kBf16);
  };
  const auto fused = on(megatron(gpt, AttentionImplementation::kFused));
  StepConfig c;
  c.pipeline = 2;
  c.micro_batches = 8;
  const StepPrediction none = PredictStep(fused->step(), c).value();
  c.recompute = Recompute::kBlocks;
  const StepPrediction blocks = PredictStep(fused->step(), c).value();
  c.recompute = Recompute::kSelective;
  const auto with = [&](const ModelOnCluster& model, const char* modules) {
    c.modules = modules;
    return PredictStep(model.step(), c).value();
  };
  for (const char* modules : {"layernorm", "mlp", "layernorm+mlp", "every_second_product"}) {
    const StepPrediction some = with(*fused, modules);
    EXPECT_GT(some.step_time, none.step_time) << modules;
    EXPECT_LT(some.step_time, blocks.step_time) << modules;
    EXPECT_LT(some.largest_device, none.largest_device) << modules;
    EXPECT_GT(some.largest_device, blocks.largest_device) << modules;
  }
  // Fused attention keeps no scores: its core takes time alone. Unfused it is what "selective" is.
  EXPECT_EQ(with(*fused, "core_attn").largest_device, none.largest_device);
  EXPECT_GT(with(*fused, "core_attn").step_time, none.step_time);
  const auto unfused = on(megatron(gpt, AttentionImplementation::kUnfused));
  EXPECT_EQ(with(*unfused, "core_attn").step_time, with(*unfused, "").step_time);
  EXPECT_EQ(with(*unfused, "core_attn").largest_device, with(*unfused, "").largest_device);
  EXPECT_LT(with(*unfused, "core_attn+layernorm").largest_device,
            with(*unfused, "").largest_device);
  EXPECT_THAT(PredictStep(fused->step(), ParseStepConfig("", "1f1b:recompute=selective").value())
                  .status()
                  .message(),
              HasSubstr("no layer of gpt keeps attention's scores"));
  const auto own = on(BuildGpt(gpt).value());
  c.modules = "mlp";
  EXPECT_THAT(PredictStep(own->step(), c).status().message(),
              HasSubstr("modules=mlp: gpt has kernels of its own; give --kernels=megatron"));
}

}  // namespace
}  // namespace pipelab
