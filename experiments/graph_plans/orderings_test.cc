// What the GraphPipe study finds, held: a change of the cost model, a specification or a planner
// that turns one of these round is seen here. No times of searches.
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "experiments/graph_plans/case_study.h"
#include "experiments/graph_plans/comparison.h"
#include "experiments/graph_plans/plan_sweep.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class OrderingsTest : public testing::Test {
 protected:
  OrderingsTest() {
    options_.cluster = &cluster_;
    options_.most_micro_batches = 64;
    options_.time_limit = absl::Seconds(2);  // GraphPipe's planner goes on as long as it may
  }

  PlanSweep Sweep(const StudyNet& net, const PlanMethod& method, int64_t devices) {
    options_.devices = devices;
    auto sweep = SweepPlans(net, method, options_);
    EXPECT_THAT(sweep, IsOk());
    return *std::move(sweep);
  }

  const ClusterSpec cluster_ = LoadCluster("--cluster", "summit-4gpu").value();
  PlanSweepOptions options_;
};

// Every size of micro-batches, with a plan that fits at some of them, and none that does not.
TEST_F(OrderingsTest, SweepsEverySize) {
  const StudyNet net = StudyNets()[0];
  for (const PlanMethod& method : {PipeDreamMethod(), GraphPipeMethod()}) {
    const PlanSweep sweep = Sweep(net, method, 4);
    ASSERT_EQ(sweep.runs.size(), method.chooses_sizes ? 5 : 4);
    int counted = 0;
    for (const PlanRun& run : sweep.runs) {
      if (!run.missing.empty()) continue;
      ++counted;
      EXPECT_GT(run.throughput, 0);
      EXPECT_LE(run.memory, cluster_.device.memory.value);
      EXPECT_LE(run.throughput, sweep.best()->throughput);
      EXPECT_GE(run.bubble, 0);
      EXPECT_LT(run.bubble, 1);
    }
    EXPECT_GE(counted, 3);
  }
}

// In a line there is nothing to put side by side: one planner, one plan.
TEST_F(OrderingsTest, APlainTransformerIsTheSequentialControl) {
  const StudyNet net = SequentialNet();
  for (const int64_t devices : {4, 8}) {
    const PlanSweep graph = Sweep(net, GraphPipeMethod(), devices);
    const PlanSweep line = Sweep(net, SequentialMethod(), devices);
    ASSERT_NE(graph.best(), nullptr);
    EXPECT_DOUBLE_EQ(graph.best()->throughput, line.best()->throughput) << devices;
    EXPECT_EQ(graph.best()->depth, line.best()->depth);
  }
}

TEST_F(OrderingsTest, ParallelStagesOfTheMmtAreFasterAndNoDeeper) {
  const StudyNet net = StudyNets()[0];
  for (const int64_t devices : {8, 16}) {
    const PlanSweep graph = Sweep(net, GraphPipeMethod(), devices);
    const PlanSweep line = Sweep(net, SequentialMethod(), devices);
    ASSERT_NE(graph.best(), nullptr);
    ASSERT_NE(line.best(), nullptr);
    EXPECT_LE(graph.best()->depth, line.best()->depth) << devices;
    EXPECT_GT(graph.best()->throughput, 1.05 * line.best()->throughput) << devices;
  }
}

// The baselines' pipelines are as deep as they have stages, the deeper the more devices there are.
TEST_F(OrderingsTest, TheMmtsGainGrowsWithTheDevices) {
  const StudyNet net = StudyNets()[0];
  double gain = 1.1;
  for (const int64_t devices : {4, 16}) {
    options_.devices = devices;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Comparison c, ComparePlanners(net, options_));
    EXPECT_GT(c.Gain(), gain) << devices;
    gain = c.Gain();
  }
}

// Half as deep, the graph gains the more, the larger the micro-batches: there are fewer of them to
// fill the pipeline with.
TEST_F(OrderingsTest, TheCaseStudysGraphBeatsItsChain) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CaseStudy study, RunCaseStudy(options_));
  ASSERT_EQ(study.chain.runs.size(), study.graph.runs.size());
  std::vector<double> gains;
  for (size_t i = 0; i < study.chain.runs.size(); ++i) {
    const PlanRun &chain = study.chain.runs[i], &graph = study.graph.runs[i];
    ASSERT_EQ(chain.missing, "");
    if (!graph.missing.empty()) continue;
    EXPECT_EQ(chain.depth, 8);
    EXPECT_EQ(graph.depth, 4);
    gains.push_back(graph.throughput / chain.throughput);
  }
  ASSERT_GE(gains.size(), 5);
  EXPECT_GT(gains.back(), gains[gains.size() / 2]);
  EXPECT_GT(study.Gain(), 1);
}

}  // namespace
}  // namespace pipelab
