// What the GraphPipe study finds, held: a change of the cost model, a specification or a planner
// that turns one of these round is seen here. No times of searches.
#include <map>
#include <string>
#include <utility>
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
    // Without a limit in time the planners answer the same on every machine. GraphPipe's goes on
    // for as many steps as it may: with these few it has found what is held here.
    options_.time_limit = absl::InfiniteDuration();
    options_.most_steps = 1'000'000;
  }

  PlanSweep Sweep(const StudyNet& net, const PlanMethod& method, int64_t devices) {
    options_.devices = devices;
    auto sweep = SweepPlans(net, method, options_);
    EXPECT_THAT(sweep, IsOk());
    return *std::move(sweep);
  }

  // All planners' plans of the MMT on so many devices, which several test cases look at: searched
  // for once.
  const Comparison& Mmt(int64_t devices) {
    static auto* const all = new std::map<int64_t, Comparison>();
    const auto [c, is_new] = all->try_emplace(devices);
    if (is_new) {
      options_.devices = devices;
      auto compared = ComparePlanners(StudyNets()[0], options_);
      EXPECT_THAT(compared, IsOk());
      if (compared.ok()) c->second = *std::move(compared);
    }
    return c->second;
  }

  const ClusterSpec cluster_ = LoadCluster("--cluster", "summit-4gpu").value();
  PlanSweepOptions options_;
};

// Every size of micro-batches, with a plan that fits at some of them, and none that does not.
TEST_F(OrderingsTest, SweepsEverySize) {
  const Comparison& mmt = Mmt(4);
  // GraphPipe's planner chooses sizes, too.
  for (const auto& [sweep, sizes] : {std::pair(&mmt.pipedream, 4), {&mmt.graphpipe, 5}}) {
    ASSERT_EQ(sweep->runs.size(), sizes);
    int counted = 0;
    for (const PlanRun& run : sweep->runs) {
      if (!run.missing.empty()) continue;
      ++counted;
      EXPECT_GT(run.throughput, 0);
      EXPECT_LE(run.memory, cluster_.device.memory.value);
      EXPECT_LE(run.throughput, sweep->best()->throughput);
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
  for (const int64_t devices : {8, 16}) {
    const PlanSweep &graph = Mmt(devices).graphpipe, &line = Mmt(devices).sequential;
    ASSERT_NE(graph.best(), nullptr);
    ASSERT_NE(line.best(), nullptr);
    EXPECT_LE(graph.best()->depth, line.best()->depth) << devices;
    EXPECT_GT(graph.best()->throughput, 1.05 * line.best()->throughput) << devices;
  }
}

// The baselines' pipelines are as deep as they have stages, the deeper the more devices there are.
TEST_F(OrderingsTest, TheMmtsGainGrowsWithTheDevices) {
  double gain = 1.1;
  for (const int64_t devices : {4, 16}) {
    EXPECT_GT(Mmt(devices).Gain(), gain) << devices;
    gain = Mmt(devices).Gain();
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
