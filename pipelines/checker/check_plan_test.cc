// The checker on plans that are wrong in one thing each, and on figures by hand.
#include "pipelines/checker/check_plan.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a -> b, c -> d. One second and a byte in flight each, two bytes fixed, three of parameters, four
// an edge, over four bytes a second; tensor degree 2 halves the time and sends a byte an edge.
PlanProblem Diamond(PlanObjective objective = PlanObjective::kStageTime) {
  PlanProblem p;
  p.objective = objective;
  p.devices = 8;
  p.memory_bytes = 20;
  p.bandwidth = 4;
  p.micro_batches = 4;
  for (const char* id : {"a", "b", "c", "d"}) {
    PlanOperator o;
    o.id = id;
    o.output_bytes = 4;
    o.transfer_time = 0.5;
    o.processor_time = 10;
    PlanVariant v;
    v.name = "plain";
    v.time = 1;
    v.parameter_bytes = 3;
    v.in_flight_bytes = 1;
    v.fixed_bytes = 2;
    o.variants[1] = {v};
    p.operators.push_back(o);
  }
  p.edges = {{0, 1, 4}, {0, 2, 4}, {1, 3, 4}, {2, 3, 4}};
  for (int i = 0; i < 4; ++i) {
    PlanVariant v = p.operators[i].variants[1][0];
    v.time = 0.5;
    v.in_sync.assign(i == 0 ? 0 : i == 3 ? 2 : 1, 1);
    v.out_sync.assign(i == 3 ? 0 : i == 0 ? 2 : 1, 1);
    p.operators[i].variants[2] = {v};
  }
  p.levels = {{8, 4}};
  EXPECT_THAT(FinishProblem(&p, "diamond"), IsOk());
  return p;
}

PlanStage Stage(std::vector<int> layers, int64_t data = 1, int tensor = 1) {
  PlanStage stage;
  stage.variants.assign(layers.size(), 0);
  stage.layers = std::move(layers);
  stage.data = data;
  stage.tensor = tensor;
  return stage;
}

Plan PlanOf(std::vector<PlanStage> stages, PlanObjective objective = PlanObjective::kStageTime) {
  Plan plan;
  plan.objective = objective;
  plan.stages = std::move(stages);
  return plan;
}

std::string ErrorOf(const PlanProblem& p, const Plan& plan) {
  return std::string(EvaluatePlan(p, plan).status().message());
}

TEST(CheckPlan, FiguresByHand) {
  const PlanProblem p = Diamond();
  const Plan plan = PlanOf({Stage({0}, 2), Stage({1, 2}, 1, 2), Stage({3})});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanReport r, EvaluatePlan(p, plan));
  // Two copies: half of a second and of 16 bytes; 4 * 3 / (2 * 4) bytes to synchronise.
  EXPECT_THAT(r.stage_times,
              ElementsAre(DoubleEq(0.5 + (8 + 1.5) / 4), DoubleEq(1 + 2 * (16 + 4) / 4.0),
                          DoubleEq(1 + 2 * 8 / 4.0)));
  EXPECT_DOUBLE_EQ(r.value, 11);
  EXPECT_THAT(r.stage_bytes, ElementsAre(2 + 2, 2 * 2 + 4, 1 + 2));
  EXPECT_EQ(r.devices, 5);
  EXPECT_DOUBLE_EQ(r.work_bound, 4.0 / 8);
  // Four copies of one operator: a quarter of a second and 4 * 3 * 3 / (4 * 4) bytes; of degree 2,
  // two copies are a quarter of a second and 4 * 3 / (2 * 4) bytes.
  EXPECT_DOUBLE_EQ(r.operator_bound, 0.5);
  // One micro-batch through all, and three at the pace of the middle.
  EXPECT_DOUBLE_EQ(r.step_time, 2 * 2.875 + 11 + 5 + 3 * 11);
}

// An operator alone is as fast on one copy as on any, or on as many as there are: no number between
// is tried, so that 2^40 devices take no time.
TEST(CheckPlan, BoundsOfManyDevices) {
  PlanProblem p = Diamond();
  const Plan plan = PlanOf({Stage({0, 1, 2, 3})});
  // One second, and 4 * 3 / 4 / 4 to synchronise: 1 / d + 0.75 (d - 1) / d. On pairs half a second.
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport report, EvaluatePlan(p, plan));
  EXPECT_THAT(report.operator_bound, DoubleEq(0.5));
  p.devices = p.levels[0].devices = int64_t{1} << 40;
  PIPELAB_ASSERT_OK_AND_ASSIGN(report, EvaluatePlan(p, plan));
  EXPECT_THAT(report.operator_bound, DoubleEq(0.5));
  for (PlanOperator& o : p.operators) {
    for (auto& [degree, variants] : o.variants) variants[0].parameter_bytes = 0;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(report, EvaluatePlan(p, plan));
  EXPECT_THAT(report.operator_bound, DoubleEq(std::ldexp(1, -40)));
}

TEST(CheckPlan, OtherObjectivesByHand) {
  Plan plan = PlanOf({Stage({0}), Stage({1, 2}, 2), Stage({3})}, PlanObjective::kPipeDream);
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport r,
                               EvaluatePlan(Diamond(PlanObjective::kPipeDream), plan));
  // The middle synchronises 4 * 6 / (4 * 2) seconds; b and c go on. The first stage is not charged.
  EXPECT_THAT(r.stage_times,
              ElementsAre(DoubleEq(1), DoubleEq((2 + 3) / 2.0), DoubleEq(2 * 8 / 4.0)));
  plan = PlanOf({Stage({0}), Stage({1, 2}), Stage({3})}, PlanObjective::kMaxLoad);
  PlanProblem p = Diamond(PlanObjective::kMaxLoad);
  p.processors = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_times, ElementsAre(1.5, 2 + 3 * 0.5, 1 + 2 * 0.5));
  plan.stages[2].on_processor = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_times, ElementsAre(1.5, 2 + 3 * 0.5, 10));
  plan.objective = PlanObjective::kVariance;
  plan.stages[2].on_processor = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(Diamond(), plan));
  EXPECT_DOUBLE_EQ(r.value, (2 * (1.0 / 9) + 4.0 / 9) / 3);
  EXPECT_EQ(r.step_time, 0);
  // One stage: four micro-batches of four seconds.
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(Diamond(), PlanOf({Stage({0, 1, 2, 3})})));
  EXPECT_DOUBLE_EQ(r.step_time, 16);
}

// Pairs of devices with eight bytes a second, and four pairs of them with four; the second device
// is slow and the third one quick. Forwards are a quarter of a layer's second.
PlanProblem Pairs() {
  PlanProblem p = Diamond();
  p.levels = {{2, 8, 0.25}, {4, 4, 0.5}};
  p.device_speeds = {1, 0.5, 2, 1, 1, 1, 1, 1};
  p.micro_batch_size = 2;
  for (PlanOperator& o : p.operators) o.variants[1][0].forward_time = 0.25;
  return p;
}

TEST(CheckPlan, BatchTimeByHand) {
  PlanProblem p = Pairs();
  Plan plan = PlanOf({Stage({0}, 2), Stage({1, 2}), Stage({3})}, PlanObjective::kBatchTime);
  for (PlanStage& stage : plan.stages) stage.micro_batch_size = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport r, EvaluatePlan(p, plan));
  // Forward and backward of stages and transfers: 0.25 0.75, 1.5 1.5, 0.25 0.75, 1.25 1.25,
  // 0.25 0.75. The first sums its gradients in 2 * (0.25 + 1.5 / 8). The second transfer is busy.
  EXPECT_DOUBLE_EQ(r.value, 4 * 2.5 + 2 + 3 + 0.875);
  EXPECT_DOUBLE_EQ(r.step_time, r.value);
  EXPECT_THAT(r.stage_times, ElementsAre(1, 1, 1));
  EXPECT_DOUBLE_EQ(r.work_bound, 4 * 4 / 8.5);
  EXPECT_THAT(r.stage_bytes, ElementsAre(0.5 * 3 + 2, 2 * 2 + 4, 1 + 2));
  plan.kfkb = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_bytes, ElementsAre(0.5 * 4 + 2, 2 * 4 + 4, 2 + 2));
  plan.stages[0].in_flight = 3;
  EXPECT_EQ(ErrorOf(p, plan), "stage 0: 3 micro-batches in flight; its schedule has 4");
  plan.stages[0].in_flight = 0;
  // Transfers between passes: the second stage is busy, with both.
  plan.objective = PlanObjective::kBatchTimeNoOverlap;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_times, ElementsAre(4, 6.5, 3.5));
  EXPECT_DOUBLE_EQ(r.value, 4 * 6.5 + 1.75 + 2.25 + 0.875);
  plan.stages[1].first_device = 1;
  EXPECT_EQ(ErrorOf(p, plan),
            "stage 1: devices 1 to 1: the stages before it have those up to 1, the machine has 8");
  plan.stages[1].first_device = 8;
  EXPECT_THAT(ErrorOf(p, plan), HasSubstr("stage 1: devices 8 to 8"));
  // The last stage's sum is the end: its gradients are there before the transfer's last backward.
  plan = PlanOf({Stage({0, 1, 2}), Stage({3}, 4)}, PlanObjective::kBatchTime);
  p.operators[3].variants[1][0].parameter_bytes = 30;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_DOUBLE_EQ(r.value, 0.75 + 4 * 5 - 2.5 + 6 * (0.5 + 30 / 16.0));
  // One sample takes nearly as long as two, so copies are of no use.
  p.micro_batch_sizes = {1, 2};
  for (PlanOperator& o : p.operators) {
    o.variants.erase(2);
    o.variants[1][0].times = {{0.25, 0.9}, {0.25, 1}};
  }
  plan = PlanOf({Stage({0, 1, 2, 3})}, PlanObjective::kBatchTime);
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_DOUBLE_EQ(r.work_bound, 4 * 4 / 8.5);
}

// A unit of two tokens takes 3 seconds, 5 behind another one, and two units 7.
TEST(CheckPlan, SlicesByHand) {
  PlanProblem p = Diamond();
  p.micro_batches = 2;
  Plan plan = PlanOf({Stage({0, 1}), Stage({2, 3})}, PlanObjective::kSliceTime);
  plan.slices = {{1, {2, 2}}, {1, {4}}};
  EXPECT_EQ(ErrorOf(p, plan), "slices: the problem has no times of them");
  p.tokens = 4;
  p.token_step = 2;
  for (PlanOperator& o : p.operators) o.slice_times = {{{{1, 3}, {2, 5}}, {{3, 7}}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport r, EvaluatePlan(p, plan));
  EXPECT_DOUBLE_EQ(r.value, 6 + 10 + 14 + 14);
  p.operators[0].variants[1][0].recompute = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_DOUBLE_EQ(r.value, 7 + 12 + 17 + 17);
  const auto error = [&](std::vector<PlanSlices> slices) {
    plan.slices = std::move(slices);
    return ErrorOf(p, plan);
  };
  EXPECT_EQ(error({{1, {3, 1}}}), "slices: micro-batch 0: 3 tokens after 0 of 4, in steps of 2");
  EXPECT_THAT(error({{1, {0, 4}}}), HasSubstr("0 tokens after 0 of 4"));
  EXPECT_THAT(error({{1, {4, 2}}}), HasSubstr("2 tokens after 4 of 4"));
  EXPECT_EQ(error({{1, {2}}}), "slices: micro-batch 0 has 2 of 4 tokens");
  EXPECT_EQ(error({{2, {4}}}), "slices: micro-batch 0 has 2 samples");
  EXPECT_EQ(error({{1, {4}}}), "slices: of 1 samples, a batch has 2");
}

TEST(CheckPlan, GraphBatchTimeByHand) {
  PlanProblem p = Diamond(PlanObjective::kGraphBatchTime);
  p.latency = 0.25;
  Plan plan =
      PlanOf({Stage({0}), Stage({1}), Stage({2}), Stage({3})}, PlanObjective::kGraphBatchTime);
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport r, EvaluatePlan(p, plan));
  // A second, 16 bytes and 4 messages each; three stages are on a path.
  EXPECT_THAT(r.stage_times, ElementsAre(6, 6, 6, 6));
  EXPECT_DOUBLE_EQ(r.value, 3 * 6 + 3 * 6);
  EXPECT_DOUBLE_EQ(r.work_bound, 4 * 4 / 8.0);
  EXPECT_DOUBLE_EQ(r.operator_bound, 4 / 8.0);
  // The last one runs two samples at a time, with half of the messages a sample.
  plan.stages[3].micro_batch_size = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_times, ElementsAre(6, 6, 6, 5.5));
  EXPECT_DOUBLE_EQ(r.value, 6 + 6 + 11 + 3 * 6);
}

TEST(CheckPlan, NamesWhatIsWrong) {
  const PlanProblem p = Diamond();
  const auto error = [&](std::vector<PlanStage> stages) {
    return ErrorOf(p, PlanOf(std::move(stages)));
  };
  EXPECT_EQ(error({Stage({0, 1, 2, 3})}), "");
  EXPECT_EQ(error({}), "the plan has no stages");
  EXPECT_EQ(error({Stage({0, 1, 2})}), "layer d is in no stage");
  EXPECT_EQ(error({Stage({0, 1, 2}), Stage({2, 3})}), "layer c is in stage 0 and in stage 1");
  EXPECT_EQ(error({Stage({0, 1, 2}), Stage({4})}), "stage 1: there is no layer 4");
  EXPECT_THAT(error({Stage({0, 3}), Stage({1, 2})}), HasSubstr("stage 0: not convex"));
  EXPECT_THAT(error({Stage({3}), Stage({0, 1, 2})}), HasSubstr("which is listed before it"));
  EXPECT_THAT(error({Stage({0, 1, 2, 3}, 1, 3)}), HasSubstr("layer a cannot be run with tensor"));
  EXPECT_EQ(error({Stage({0, 1, 2, 3}, 3)}), "stage 0: 3 copies do not divide 4 micro-batches");
  EXPECT_EQ(error({Stage({0, 1}, 4, 2), Stage({2, 3})}),
            "the stages have 9 devices, the machine 8");
  EXPECT_EQ(error({Stage({0, 1}, 4), Stage({2, 3})}),
            "the stages have 5 copies in all, but a batch only 4 micro-batches");
  PlanProblem small = p;
  small.memory_bytes = 7;
  EXPECT_EQ(ErrorOf(small, PlanOf({Stage({0, 1}), Stage({2, 3})})),
            "stage 0: a device needs 8 bytes of the 7 that it has");
  Plan variants = PlanOf({Stage({0, 1, 2, 3})});
  variants.stages[0].variants[2] = 1;
  EXPECT_EQ(ErrorOf(p, variants), "stage 0: layer c has no variant 1");
}

// Stages that are convex each, but feed one another.
TEST(CheckPlan, FindsCyclesOfStages) {
  PlanProblem p = Diamond();
  p.edges = {{0, 1, 4}, {2, 3, 4}};
  for (PlanOperator& o : p.operators) {
    o.variants.erase(2);
    o.variants[1][0].in_sync.clear();
    o.variants[1][0].out_sync.clear();
  }
  ASSERT_THAT(FinishProblem(&p, "two chains"), IsOk());
  Plan plan = PlanOf({Stage({0, 3}), Stage({1, 2})});
  EXPECT_THAT(ErrorOf(p, plan), HasSubstr("listed before it"));
  plan.objective = PlanObjective::kGraphStageTime;
  EXPECT_THAT(ErrorOf(p, plan), HasSubstr("feed one another in a cycle: stage 0 is one of them"));
}

TEST(CheckPlan, GraphPlansSayWhatIsInFlight) {
  PlanProblem p = Diamond();
  p.objective = PlanObjective::kGraphStageTime;
  Plan plan =
      PlanOf({Stage({0}), Stage({1}), Stage({2}), Stage({3})}, PlanObjective::kGraphStageTime);
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanReport r, EvaluatePlan(p, plan));
  EXPECT_THAT(r.stage_bytes, ElementsAre(5, 4, 4, 3));  // three on the longest path
  plan.stages[0].in_flight = 2;
  EXPECT_EQ(ErrorOf(p, plan),
            "stage 0: 2 micro-batches in flight, but the stages behind it need 3");
  plan.stages[0].in_flight = 4;
  PIPELAB_ASSERT_OK_AND_ASSIGN(r, EvaluatePlan(p, plan));
  EXPECT_EQ(r.stage_bytes[0], 6);
}

TEST(CheckPlan, PlacementRules) {
  PlanProblem p = Diamond(PlanObjective::kMaxLoad);
  p.processors = 0;
  Plan plan = PlanOf({Stage({0, 1}), Stage({2, 3})}, PlanObjective::kMaxLoad);
  EXPECT_EQ(ErrorOf(p, plan), "");
  p.operators[0].colour = p.operators[3].colour = 7;
  EXPECT_EQ(ErrorOf(p, plan), "layers a and d must share a device, but are in stages 0 and 1");
  p.operators[3].colour = -1;
  p.operators[3].on_accelerator = false;
  EXPECT_EQ(ErrorOf(p, plan), "stage 1: layer d runs on a processor alone");
  plan.stages[1].on_processor = true;
  EXPECT_EQ(ErrorOf(p, plan), "the stages have 1 processors, the machine 0");
  plan.stages[1] = Stage({2, 3}, 2);
  p.operators[3].on_accelerator = true;
  EXPECT_EQ(ErrorOf(p, plan), "stage 1: more than one device");
}

TEST(CheckPlan, HoldsAPlanToItsWord) {
  const PlanProblem p = Diamond();
  Plan plan = PlanOf({Stage({0, 1}), Stage({2, 3})});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanReport r, EvaluatePlan(p, plan));
  plan.value = r.value;
  EXPECT_THAT(CheckPlan(p, plan), IsOk());
  plan.value = r.value * 0.999;
  EXPECT_THAT(CheckPlan(p, plan).status().message(), HasSubstr("the plan says"));
  plan.value = r.value;
  plan.lower_bound = r.value * 1.001;
  EXPECT_THAT(CheckPlan(p, plan).status().message(),
              HasSubstr("the plan says that its lower bound is"));
}

}  // namespace
}  // namespace pipelab
