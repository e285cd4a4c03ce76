// TeraPipe's slicing against every slicing of small batches, and its planner on models.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/published.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/planners.h"
#include "pipelines/planners/token_slicing.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SlicingProblem RandomProblem(Draw* draw) {
  SlicingProblem p;
  p.batch_samples = 1 + draw->Below(4);
  p.stages = 1 + draw->Below(6);
  p.units = 1 + static_cast<int>(draw->Below(5));
  p.sizes = draw->Below(3) == 0 ? std::vector<int64_t>{2} : std::vector<int64_t>{1, 2, 3};
  for (size_t s = 0; s < p.sizes.size(); ++s) {
    SliceTimes times(p.units);
    for (int length = 1; length <= p.units; ++length) {
      for (int before = 0; before + length <= p.units; ++before) {
        times[length - 1].push_back(static_cast<double>(1 + length + draw->Below(8)));
      }
    }
    p.times.push_back(times);
  }
  return p;
}

// Every sequence of micro-batches, each cut in every way.
double BruteForceSlices(const SlicingProblem& p, int64_t samples, size_t size, int units,
                        double sum, double longest) {
  if (units == 0) {
    samples -= p.sizes[size];
    if (samples == 0) return sum + static_cast<double>(p.stages - 1) * longest;
    units = p.units;
    double best = kInfinity;
    for (size_t s = 0; s < p.sizes.size(); ++s) {
      if (p.sizes[s] > samples) continue;
      best = std::min(best, BruteForceSlices(p, samples, s, units, sum, longest));
    }
    return best;
  }
  double best = kInfinity;
  for (int length = 1; length <= units; ++length) {
    const double time = p.times[size][length - 1][p.units - units];
    best = std::min(best, BruteForceSlices(p, samples, size, units - length, sum + time,
                                           std::max(longest, time)));
  }
  return best;
}

TEST(SliceBatch, BestOfAllSlicings) {
  for (int seed = 0; seed < 500; ++seed) {
    Draw draw(seed, "terapipe");
    const SlicingProblem p = RandomProblem(&draw);
    double best = kInfinity;
    for (size_t s = 0; s < p.sizes.size(); ++s) {
      if (p.sizes[s] > p.batch_samples) continue;
      best = std::min(best, BruteForceSlices(p, p.batch_samples, s, p.units, 0, 0));
    }
    const TokenSlicing found = SliceBatch(p, absl::InfiniteFuture());
    ASSERT_TRUE(found.complete);
    ASSERT_EQ(found.micro_batches.empty(), best == kInfinity) << seed;
    if (best < kInfinity) {
      ASSERT_EQ(found.time, best) << seed;
    }
  }
}

// A slice that costs as much as it is long has no reason to be long; one that has a fixed cost has.
TEST(SliceBatch, ShortSlicesFillThePipelineLongOnesCostLess) {
  for (const double fixed : {0.0, 20.0}) {
    SlicingProblem p;
    p.stages = 4;
    p.units = 8;
    p.sizes = {1};
    p.times.resize(1);
    p.times[0].resize(8);
    for (int length = 1; length <= 8; ++length) {
      p.times[0][length - 1].assign(9 - length, fixed + length);
    }
    const TokenSlicing found = SliceBatch(p, absl::InfiniteFuture());
    ASSERT_EQ(found.micro_batches.size(), 1);
    if (fixed == 0) {
      EXPECT_THAT(found.micro_batches[0].lengths, ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
      EXPECT_EQ(found.time, 8 + 3);
    } else {
      EXPECT_EQ(found.micro_batches[0].lengths.size(), 1);
      EXPECT_EQ(found.time, 4 * 28);
    }
  }
}

ModelGraph Gpt() {
  GptConfig config;
  config.layers = 8;
  config.hidden = 1024;
  config.heads = 16;
  config.tokens = 1024;
  config.vocabulary = 1000;
  return BuildGpt(config).value();
}

PlanProblem ProblemOf(const ModelGraph& graph, int64_t devices, int64_t batch) {
  const ClusterSpec cluster = LoadCluster("--cluster", "dgx1-v100").value();
  ModelProblemOptions options;
  options.devices = devices;
  options.batch_samples = batch;
  options.micro_batch_sizes = {1, 2, 4};
  options.token_step = 64;
  PlanProblem problem = ModelProblem(graph, cluster, options).value();
  EXPECT_THAT(FinishProblem(&problem, "gpt"), IsOk());
  return problem;
}

TEST(TeraPipe, PlansAModel) {
  size_t slices_before = 0;
  for (const int64_t devices : {1, 4, 8}) {
    const PlanProblem p = ProblemOf(Gpt(), devices, 4);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("terapipe", p, {}));
    ASSERT_EQ(plan.state, PlanState::kOptimal);
    EXPECT_EQ(static_cast<int64_t>(plan.stages.size()), devices);
    EXPECT_EQ(ObjectiveUnit(p, plan.objective), "s/batch");
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanReport report, CheckPlan(p, plan));
    EXPECT_NEAR(report.value, plan.value, 1e-9 * plan.value);
    size_t slices = 0;
    for (const PlanSlices& micro_batch : plan.slices) slices += micro_batch.tokens.size();
    // More stages to fill ask for more slices.
    EXPECT_GE(slices, slices_before);
    slices_before = slices;
    // Through JSON and back.
    const std::string text = PlanToJson(plan, p);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan again, ParsePlan(text, "plan.json", p));
    EXPECT_EQ(PlanToJson(again, p), text);
  }
  EXPECT_GT(slices_before, 4);
}

TEST(TeraPipe, TheCheckerFindsWhatIsWrong) {
  const PlanProblem p = ProblemOf(Gpt(), 4, 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("terapipe", p, {}));
  const auto error = [&](auto change) {
    Plan wrong = plan;
    change(&wrong);
    return std::string(CheckPlan(p, wrong).status().message());
  };
  EXPECT_THAT(error([](Plan* w) { w->slices.pop_back(); }), HasSubstr("a batch has 4"));
  EXPECT_THAT(error([](Plan* w) { w->slices[0].tokens.pop_back(); }), HasSubstr("of 1024 tokens"));
  EXPECT_THAT(error([](Plan* w) { w->slices[0].tokens[0] += 8; }), HasSubstr("in steps of 64"));
  EXPECT_THAT(error([](Plan* w) { w->slices[0].micro_batch_size = 3; }),
              HasSubstr("has 3 samples"));
  EXPECT_THAT(error([](Plan* w) { w->value *= 2; }), HasSubstr("the plan says"));
}

TEST(TeraPipe, Refuses) {
  PlanProblem p = ProblemOf(Gpt(), 4, 4);
  p.memory_bytes = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Plan plan, MakePlan("terapipe", p, {}));
  EXPECT_EQ(plan.state, PlanState::kInfeasible);
  p.tokens = 0;
  EXPECT_THAT(MakePlan("terapipe", p, {}).status().message(),
              HasSubstr("no times of token slices"));
  p.tokens = 1024;
  p.token_step = 48;
  EXPECT_THAT(FinishProblem(&p, "x").message(), HasSubstr("multiple of 48 tokens: do not divide"));
  p.token_step = 32;
  EXPECT_THAT(FinishProblem(&p, "x").message(), HasSubstr("must have the times of all slices"));

  const ClusterSpec cluster = LoadCluster("--cluster", "dgx1-v100").value();
  ModelProblemOptions options;
  options.token_step = 48;
  EXPECT_THAT(ModelProblem(Gpt(), cluster, options).status().message(),
              HasSubstr("--token_step=48: must divide the 1024 tokens"));
  options.token_step = 64;
  const ModelGraph candle = BuildPublished("candle-uno").value();
  EXPECT_THAT(ModelProblem(candle, cluster, options).status().message(),
              HasSubstr("whole samples"));
}

TEST(TeraPipe, SaysWhenItWasStopped) {
  PlannerOptions options;
  options.time_limit = absl::ZeroDuration();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan,
                               MakePlan("terapipe", ProblemOf(Gpt(), 4, 4), options));
  EXPECT_EQ(plan.state, PlanState::kTimeLimit);
  EXPECT_TRUE(plan.has_plan());
  EXPECT_THAT(CheckPlan(ProblemOf(Gpt(), 4, 4), plan), IsOk());
}

}  // namespace
}  // namespace pipelab
