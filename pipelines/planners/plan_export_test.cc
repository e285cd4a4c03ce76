#include "pipelines/planners/plan_export.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt_testing.h"
#include "pipelines/ir/text.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Layers as ranges of these lengths, on as many copies each.
absl::StatusOr<PlanPipeline> Pipeline(const ModelGraph& graph, const std::vector<int>& sizes,
                                      const std::vector<int64_t>& copies) {
  Plan plan;
  int layer = 0;
  for (size_t s = 0; s < sizes.size(); ++s) {
    PlanStage& stage = plan.stages.emplace_back();
    for (int i = 0; i < sizes[s]; ++i) stage.layers.push_back(layer++);
    stage.variants.assign(sizes[s], 0);
    stage.data = copies[s];
  }
  PlanPipelineOptions options;
  options.batch_samples = 16;
  options.micro_batch_size = 2;
  return MakePlanPipeline(graph, ModelOperators(graph, {}), plan, options);
}

// Copies take the 8 micro-batches in turn: each runs a schedule of its share of them.
TEST(PyTorchCsv, IsThatOfOneCopy) {
  const ModelGraph gpt = SmallestGpt(6);
  for (const int copies : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule wanted, MakeSchedule("1f1b", {4, 8 / copies}));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text, ToCsv(wanted));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline pipeline,
                                 Pipeline(gpt, {3, 4, 4, 3}, std::vector<int64_t>(4, copies)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, PyTorchCsv(pipeline));
    EXPECT_EQ(csv, text);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline uneven, Pipeline(gpt, {7, 7}, {1, 2}));
  EXPECT_THAT(PyTorchCsv(uneven), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("stage 1 has 2 copies, and stage 0 1")));
}

}  // namespace
}  // namespace pipelab
