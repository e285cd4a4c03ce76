// Plans run for real: stages that form a graph, stages on several devices that share the rows of
// their micro-batches, stages with micro-batches of their own size. Each trains as the serial loop
// does, in the memory that the simulator predicts.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/random_batches.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/planners/planners.h"
#include "pipelines/runtime/training.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kPlanSteps = 3;
constexpr int64_t kBatch = 16;

// Terms of the largest products' sums: for other numbers of rows, as of stages with micro-batches
// or copies of their own, a kernel may add them in another order.
int64_t LongestProduct(const ModelGraph& graph) {
  int64_t terms = 0;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.shape.size() > 1) terms = std::max(terms, p.shape[0]);
    }
  }
  return terms;
}

class PlanRunTest : public testing::Test {
 protected:
  // Losses of the plan's pipeline, which must be those of a serial loop of its smallest
  // micro-batches.
  void Check(const ModelGraph& graph, const PlanProblem& problem, const Plan& plan) {
    PlanPipelineOptions sizes;
    sizes.batch_samples = kBatch;
    sizes.micro_batch_size = 4;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline pipeline,
                                 MakePlanPipeline(graph, problem, plan, sizes));
    const RandomBatches batches(FieldsOf(graph), kBatch, /*seed=*/7);
    TrainingOptions options = SmallTraining("graph", 1, 1);
    options.schedule = pipeline.schedule;
    options.config.layout = StagesText(pipeline.partition.stage_of_layer);
    options.config.micro_batch_size = pipeline.micro_batch_size;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, batches, options));
    SchemeResult result;
    result.config.micro_batches = kBatch;  // terms of a sum, at most
    result.tensor_terms = LongestProduct(graph);
    result.must_be_bit_equal =
        KeepsMicroBatchOrder(pipeline.schedule) && SumsInLayerOrder(graph, pipeline.partition);
    result.losses = LossesAsPredicted(training.get(), kPlanSteps);
    SerialOptions serial = SmallSerial(batches, pipeline.schedule.num_micro_batches);
    serial.micro_batch_size = pipeline.micro_batch_size;
    const Equality equality = CompareLosses(result, SerialLosses(graph, serial, kPlanSteps));
    EXPECT_TRUE(equality.ok) << equality.text;
    ++(result.must_be_bit_equal ? bit_equal_ : within_);
  }

  // Parallel stages of the branches.
  static Plan Branches(const ModelGraph& graph, int stages_of_branch) {
    const std::vector<int> stage_of = *BranchStages(graph, stages_of_branch);
    Plan plan;
    for (int i = 0; i < static_cast<int>(stage_of.size()); ++i) {
      const auto s = static_cast<size_t>(stage_of[i]);
      if (s >= plan.stages.size()) plan.stages.resize(s + 1);
      plan.stages[s].layers.push_back(i);
      plan.stages[s].variants.push_back(0);
    }
    return plan;
  }

  int bit_equal_ = 0, within_ = 0;
};

TEST_F(PlanRunTest, HandMadePlansOfBranchedNets) {
  for (const char* name : {"mmt-small", "candle-uno-small", "dlrm-small"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished(name));
    const PlanProblem problem = ModelOperators(graph, {});
    for (const int stages_of_branch : {1, 2}) {
      SCOPED_TRACE(testing::Message() << name << ", " << stages_of_branch << " stages a branch");
      const Plan plain = Branches(graph, stages_of_branch);
      Check(graph, problem, plain);
      Plan plan = plain;
      plan.stages[1].data = 2;  // copies that share rows
      plan.stages.back().data = 4;
      Check(graph, problem, plan);
      plan = plain;
      plan.stages[0].micro_batch_size = 8;
      plan.stages.back().micro_batch_size = 2;
      Check(graph, problem, plan);
      plan.stages[0].data = 4;         // both
      plan.stages[0].variants[0] = 1;  // and it recomputes
      Check(graph, problem, plan);
    }
  }
  EXPECT_GE(bit_equal_, 4);
  EXPECT_GE(within_, 12);
}

using StagesRun =
    std::vector<std::tuple<std::vector<int>, std::vector<int>, int64_t, int, int64_t>>;

// What a pipeline is made of.
StagesRun StagesOf(const Plan& plan) {
  StagesRun stages;
  for (const PlanStage& s : plan.stages) {
    stages.emplace_back(s.layers, s.variants, s.data, s.tensor, s.micro_batch_size);
  }
  return stages;
}

// Whatever planners there are, on groups of layers and devices of a cluster. A plan that several
// planners answer runs once.
TEST_F(PlanRunTest, WhatPlannersAnswer) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "summit-4gpu"));
  PlannerOptions few_steps;
  few_steps.most_steps = 1'000'000;
  int answers = 0;
  for (const char* name : {"mmt-small", "candle-uno-small", "gpt-small"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph graph, BuildPublished(name));
    const GroupedModel model = GroupForPlanning(std::move(graph));
    ModelProblemOptions options;
    options.devices = 4;
    options.micro_batch_size = 4;
    options.batch_samples = kBatch;
    options.micro_batch_sizes = {1, 2, 4, 8};
    options.group_of_layer = model.group_of_layer;
    std::set<StagesRun> run;
    for (const Planner& planner : Planners()) {
      for (const PlanObjective objective : {PlanObjective::kStageTime, PlanObjective::kPipeDream}) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(PlanProblem problem,
                                     ModelProblem(model.graph, cluster, options));
        problem.objective = objective;
        ASSERT_THAT(FinishProblem(&problem, name), IsOk());
        const auto plan = MakePlan(planner.name, problem, few_steps);
        if (!plan.ok() || !plan->has_plan()) continue;
        bool divides = true;
        for (const PlanStage& stage : plan->stages) {
          const int64_t samples =
              stage.micro_batch_size > 0 ? stage.micro_batch_size : options.micro_batch_size;
          divides = divides && samples % stage.data == 0;
        }
        if (!divides) continue;  // three devices cannot share four samples
        SCOPED_TRACE(testing::Message() << planner.name << " of " << name);
        if (run.insert(StagesOf(*plan)).second) Check(model.graph, problem, *plan);
        ++answers;
      }
    }
  }
  EXPECT_GE(answers, 3);
}

}  // namespace
}  // namespace pipelab
