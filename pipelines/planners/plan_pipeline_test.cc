// Plans as pipelines: schedules, costs of devices and steps on paper, over hand-made plans.
#include "pipelines/planners/plan_pipeline.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/mmt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/plan_point.h"
#include "pipelines/planners/planners.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlanPipelineTest : public testing::Test {
 protected:
  PlanPipelineTest() {
    MmtConfig config = PublishedMmt();
    config.branches = 3;
    config.layers = 4;
    config.vocabulary = 1000;
    graph_ = *BuildMmt(config);
    ModelProblemOptions options;
    options.devices = 8;
    options.micro_batch_size = 4;
    problem_ = *ModelProblem(graph_, cluster_, options);
    EXPECT_THAT(FinishProblem(&problem_, "mmt"), IsOk());
    sizes_.batch_samples = 32;
    sizes_.micro_batch_size = 4;
  }

  // The branches' stages beside one another, and one for the join.
  Plan Branches(int stages_of_branch) const {
    const std::vector<int> stage_of = *BranchStages(graph_, stages_of_branch);
    Plan plan;
    plan.stages.resize(3 * stages_of_branch + 1);
    for (int i = 0; i < static_cast<int>(stage_of.size()); ++i) {
      plan.stages[stage_of[i]].layers.push_back(i);
      plan.stages[stage_of[i]].variants.push_back(0);
    }
    return plan;
  }

  PlanPipeline Pipeline(const Plan& plan) const {
    auto pipeline = MakePlanPipeline(graph_, problem_, plan, sizes_);
    EXPECT_THAT(pipeline, IsOk());
    return *std::move(pipeline);
  }
  StepPrediction Point(const PlanPipeline& pipeline) const {
    auto point = SimulatePlan(GroupByName(graph_), pipeline, {&cluster_});
    EXPECT_THAT(point, IsOk());
    return *std::move(point);
  }

  static std::vector<int> InFlight(const Schedule& schedule) {
    std::vector<int> in_flight;
    for (int s = 0; s < schedule.num_stages(); ++s) {
      int count = 0;
      for (const Action& a : schedule.order[schedule.placement.groups[0][s][0]]) {
        if (a.kind != ActionKind::kForward) break;
        ++count;
      }
      in_flight.push_back(count);
    }
    return in_flight;
  }

  ModelGraph graph_;
  const ClusterSpec cluster_ = LoadCluster("--cluster", "summit-4gpu").value();
  PlanProblem problem_;
  PlanPipelineOptions sizes_;
};

TEST_F(PlanPipelineTest, StagesAreAGraphOrAChain) {
  const PlanPipeline graph = Pipeline(Branches(2));
  EXPECT_EQ(graph.schedule.num_devices(), 7);
  EXPECT_EQ(graph.schedule.num_micro_batches, 8);
  EXPECT_EQ(graph.Depth(), 3);
  EXPECT_THAT(InFlight(graph.schedule), ElementsAre(3, 3, 3, 2, 2, 2, 1));
  sizes_.chain = true;
  const PlanPipeline chain = Pipeline(Branches(2));
  EXPECT_EQ(chain.Depth(), 7);
  EXPECT_THAT(InFlight(chain.schedule), ElementsAre(7, 6, 5, 4, 3, 2, 1));
  const StepPrediction one = Point(graph), other = Point(chain);
  EXPECT_LT(one.trace.makespan, other.trace.makespan);
  EXPECT_LT(one.largest_device, other.largest_device);
  EXPECT_EQ(one.step.config.batch(), 32);
}

// Branch after branch on the devices, though stages are numbered side by side.
TEST_F(PlanPipelineTest, DevicesFollowTheBranches) {
  Plan plan = Branches(2);
  plan.stages[4].data = 2;
  EXPECT_THAT(Pipeline(plan).schedule.placement.groups[0],
              ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(5), ElementsAre(1),
                          ElementsAre(3, 4), ElementsAre(6), ElementsAre(7)));
  sizes_.placement = PlanPlacement::kLargestFirst;
  EXPECT_THAT(Pipeline(plan).schedule.placement.groups[0],
              ElementsAre(ElementsAre(2), ElementsAre(4), ElementsAre(5), ElementsAre(3),
                          ElementsAre(0, 1), ElementsAre(6), ElementsAre(7)));
}

// A stage of d devices costs each of them what its rows cost alone, for every d and size.
TEST_F(PlanPipelineTest, DevicesCostWhatTheirRowsCost) {
  for (const int64_t copies : {1, 2, 3, 4}) {
    for (const int64_t samples : {1, 4, 8}) {
      SCOPED_TRACE(testing::Message() << copies << " copies of " << samples);
      Plan plan = Branches(1);
      for (PlanStage& stage : plan.stages) stage.micro_batch_size = samples;
      plan.stages[1].data = copies;
      const PlanPipeline pipeline = Pipeline(plan);
      const StepPrediction point = Point(pipeline);
      StageCostOptions options;
      options.machine = Machine{cluster_.device, NumberType::kFp32};
      const int64_t rows = (samples + copies - 1) / copies;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable own,
                                   ComputeStageCosts(graph_, pipeline.partition, rows, options));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable whole,
                                   ComputeStageCosts(graph_, pipeline.partition, samples, options));
      const int device = pipeline.schedule.placement.groups[0][1][0];
      int64_t busy = 0;
      for (const ExecutedInstruction& span : SpansOf(point.step.program, point.trace, device)) {
        if (span.op == OpCode::kCompute) busy += span.end_ns - span.begin_ns;
      }
      const StageCost& cost = own.stages[1];
      EXPECT_EQ(busy,
                32 / samples * (cost.forward + cost.backward_input + cost.backward_weight).value());
      EXPECT_EQ(point.step.costs.stages[1].memory.kept, cost.memory.kept);
      EXPECT_EQ(point.step.costs.stages[0].forward, whole.stages[0].forward);
      EXPECT_EQ(point.step.costs.edge_bytes, whole.edge_bytes);
    }
  }
}

// Without a network: stages of the same time t a micro-batch of b samples take t (M + depth - 1),
// fill and drain included, and the optimizer's step.
TEST_F(PlanPipelineTest, StepIsFillSteadyStateAndDrain) {
  ModelGraph chain = *BuildMmt([] {
    MmtConfig c = PublishedMmt();
    c.branches = 1;
    c.layers = 8;
    c.vocabulary = 1000;
    return c;
  }());
  Plan plan;
  plan.stages.resize(4);
  ModelProblemOptions options;
  PlanProblem problem = *ModelProblem(chain, cluster_, options);
  ASSERT_THAT(FinishProblem(&problem, "chain"), IsOk());
  for (int i = 0; i < problem.size(); ++i) {
    PlanStage& stage = plan.stages[std::min(3, i / 5)];
    stage.layers.push_back(i);
    stage.variants.push_back(0);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline pipeline,
                               MakePlanPipeline(chain, problem, plan, sizes_));
  PIPELAB_ASSERT_OK_AND_ASSIGN(StepPrediction point,
                               SimulatePlan(GroupByName(chain), pipeline, {&cluster_}));
  point.step.costs.network = Network();
  for (StageCost& stage : point.step.costs.stages) {
    stage.forward = Milliseconds(1);
    stage.backward_input = stage.backward_weight = Milliseconds(1);
    stage.step = Milliseconds(5);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(point.step.program, point.step.costs));
  EXPECT_EQ(trace.makespan, Milliseconds(3 * (8 + 4 - 1) + 5));
}

TEST_F(PlanPipelineTest, StagesHaveTheirOwnMicroBatches) {
  Plan plan = Branches(1);
  plan.stages[0].micro_batch_size = 8;
  plan.stages[3].micro_batch_size = 2;
  const PlanPipeline p = Pipeline(plan);
  EXPECT_THAT(p.schedule.micro_batches_of_stage, ElementsAre(4, 8, 8, 16));
  EXPECT_EQ(p.micro_batch_size, 2);
  EXPECT_EQ(p.StageSamples(0), 8);
  EXPECT_EQ(p.StageSamples(1), 4);
  EXPECT_EQ(Point(p).step.config.batch(), 32);
}

// Copies take whole micro-batches of 4 in turn, or a part of each.
TEST_F(PlanPipelineTest, CopiesTakeTurnsOrShareRows) {
  Plan plan = Branches(1);
  plan.stages[0].data = 2;
  plan.stages[1].data = 3;
  plan.stages[3].data = 16;
  PlanPipeline p = Pipeline(plan);
  EXPECT_THAT(p.schedule.micro_batches_of_stage, ElementsAre(4, 2, 8, 1));
  EXPECT_EQ(p.DeviceSamples(0), 4);
  EXPECT_EQ(p.DeviceSamples(1), 6);  // of 16
  EXPECT_EQ(p.DeviceSamples(3), 2);  // a step has no more than 32
  sizes_.copies = CopyRule::kShareRows;
  p = Pipeline(plan);
  EXPECT_TRUE(p.schedule.micro_batches_of_stage.empty());
  EXPECT_EQ(p.DeviceSamples(0), 2);
  EXPECT_EQ(p.DeviceSamples(1), 2);
}

TEST_F(PlanPipelineTest, StagesThatRecomputeTakeLonger) {
  Plan plan = Branches(1);
  const StepPrediction plain = Point(Pipeline(plan));
  plan.stages[1].variants.back() = 1;
  const PlanPipeline again = Pipeline(plan);
  EXPECT_THAT(again.schedule.RecomputedStages(), ElementsAre(false, true, false, false));
  const StepPrediction point = Point(again);
  EXPECT_GT(point.trace.makespan, plain.trace.makespan);
  EXPECT_LT(point.trace.devices[1].peak_activation, plain.trace.devices[1].peak_activation);
  EXPECT_EQ(point.trace.devices[0].peak_activation, plain.trace.devices[0].peak_activation);
}

TEST_F(PlanPipelineTest, APlannersAnswerRuns) {
  PlannerOptions few_steps;
  few_steps.most_steps = 1'000'000;
  for (const Planner& planner : Planners()) {
    SCOPED_TRACE(planner.name);
    const auto plan = MakePlan(planner.name, problem_, few_steps);
    if (!plan.ok() || !plan->has_plan()) continue;
    const StepPrediction point = Point(Pipeline(*plan));
    EXPECT_GT(point.samples_per_second(), 0);
  }
}

TEST_F(PlanPipelineTest, WhatDoesNotFitIsNamed) {
  const auto error = [&](const Plan& plan) {
    return std::string(MakePlanPipeline(graph_, problem_, plan, sizes_).status().message());
  };
  EXPECT_THAT(error(Plan()), HasSubstr("no stages"));
  Plan plan = Branches(1);
  plan.stages[0].layers.push_back(plan.stages[1].layers[0]);
  EXPECT_THAT(error(plan), HasSubstr("is in stages 0 and 1"));
  plan = Branches(1);
  plan.stages[0].layers.pop_back();
  EXPECT_THAT(error(plan), HasSubstr("is in no stage"));
  plan = Branches(1);
  std::swap(plan.stages[0], plan.stages[3]);
  EXPECT_THAT(error(plan), HasSubstr("is in stage 0"));
  plan = Branches(1);
  plan.stages[2].tensor = 2;
  EXPECT_THAT(error(plan), HasSubstr("stage 2: tensor parallelism 2"));
  plan = Branches(1);
  plan.stages[2].micro_batch_size = 5;
  EXPECT_THAT(error(plan), HasSubstr("stage 2: micro-batches of 5 samples: a step has 32"));
  plan = Branches(1);
  plan.stages[0].data = 100;
  EXPECT_THAT(SimulatePlan(GroupByName(graph_), Pipeline(plan), {&cluster_}), IsOk());
  ClusterSpec small = LoadCluster("--cluster", "p100-pcie").value();
  EXPECT_THAT(SimulatePlan(GroupByName(graph_), Pipeline(plan), {&small}).status().message(),
              HasSubstr("has 8 devices"));
}

}  // namespace
}  // namespace pipelab
