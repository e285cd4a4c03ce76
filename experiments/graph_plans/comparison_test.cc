// Gains, tables and verdicts from results that are made by hand.
#include "experiments/graph_plans/comparison.h"

#include <string>
#include <vector>

#include "experiments/graph_plans/case_study.h"
#include "experiments/graph_plans/claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

PlanRun MadeRun(int64_t size, double throughput, int depth = 4) {
  PlanRun run;
  run.micro_batch_size = size;
  run.throughput = throughput;
  run.depth = run.stages = depth;
  run.bubble = 0.2;
  run.most_copies = 2;
  run.largest_micro_batch = size == 0 ? 64 : size;
  run.memory = Bytes(int64_t{3} << 30);
  run.state = PlanState::kFeasible;
  if (throughput == 0) run.missing = "needs 20.0 GiB of 16.0";
  return run;
}

PlanSweep Sweep(std::vector<PlanRun> runs, double seconds) {
  PlanSweep sweep;
  sweep.runs = std::move(runs);
  sweep.search_time = absl::Seconds(seconds);
  return sweep;
}

// GraphPipe's best is `gain` times the baseline's, which is 100.
Comparison Made(const std::string& net, int64_t devices, double gain) {
  Comparison c;
  c.net = net;
  c.devices = devices;
  c.batch = 16 * devices;
  c.pipedream = Sweep({MadeRun(1, 80), MadeRun(2, 100), MadeRun(4, 0)}, 20);
  c.piper = Sweep({MadeRun(1, 0), MadeRun(2, 0)}, 30);
  c.graphpipe = Sweep({MadeRun(1, 90, 2), MadeRun(2, 100 * (1 + gain) / 2, 2), MadeRun(4, 0),
                       MadeRun(0, 100 * gain, 2)},
                      2);
  c.sequential = Sweep({MadeRun(1, 70), MadeRun(2, 95), MadeRun(0, 1000)}, 2);
  c.once_per_step = Sweep({MadeRun(1, 85), MadeRun(2, 95)}, 20);
  c.straight = MadeRun(2, 104, 2);
  return c;
}

TEST(Comparison, GainsAreOfTheBestThatFits) {
  const Comparison c = Made("MMT", 8, 1.5);
  EXPECT_EQ(c.baseline()->throughput, 100);
  EXPECT_DOUBLE_EQ(c.Gain(), 1.5);
  EXPECT_EQ(c.parallel_stages()->micro_batch_size, 2);
  EXPECT_DOUBLE_EQ(c.GainOfParallel(), 125.0 / 95);
  EXPECT_DOUBLE_EQ(c.GainOfSizes(), 150.0 / 95);  // sizes of its own are not the ablation's base
  EXPECT_DOUBLE_EQ(c.GainOfGraph(), 150.0 / 1000);
  Comparison once = c;
  once.once_per_step.runs = {MadeRun(1, 120)};
  EXPECT_DOUBLE_EQ(once.Gain(), 150.0 / 120);
  EXPECT_DOUBLE_EQ(once.GainAsPublished(), 1.5);
  Comparison none = c;
  none.pipedream.runs = none.once_per_step.runs = {MadeRun(1, 0)};
  EXPECT_EQ(none.baseline(), nullptr);
  EXPECT_EQ(none.Gain(), 0);
}

TEST(Comparison, CountsSearchesThatWereCutShort) {
  std::vector<Comparison> all = {Made("MMT", 4, 1.1), Made("MMT", 8, 1.5)};
  EXPECT_EQ(Stopped(all), 0);
  all[0].piper.runs[1].state = PlanState::kTimeLimit;  // gave up, whatever the clock says
  EXPECT_EQ(Stopped(all), 0);
  all[0].piper.runs[1].stopped = all[1].sequential.runs[0].stopped = true;
  EXPECT_EQ(Stopped(all), 2);
  Table t = PlansTable(all);
  EXPECT_TRUE(t.columns().back().deterministic());
  t.SetVaries();
  EXPECT_FALSE(t.columns().back().deterministic());
  EXPECT_EQ(t.columns()[0].origin, Origin::kKey);
}

TEST(Comparison, TablesSayWhatIsMissingAndWhy) {
  std::vector<Comparison> all = {Made("MMT", 4, 1.1), Made("MMT", 8, 1.5)};
  all[1].straight.reset();
  for (const Table& t :
       {ThroughputTable("throughput", "Throughput", all), PlansTable(all), SizesTable(all),
        AblationTable(all), SearchTable(all), BatchesTable(all)}) {
    EXPECT_THAT(t.status(), IsOk()) << t.id();
    EXPECT_FALSE(t.rows().empty()) << t.id();
  }
  const std::string text = ThroughputTable("throughput", "Throughput", all).ToTerminal();
  EXPECT_THAT(text, HasSubstr("needs 20.0 GiB of 16.0"));
  EXPECT_THAT(text, HasSubstr("no plan that fits"));
  EXPECT_THAT(PlansTable(all).ToTerminal(), HasSubstr("up to 64"));
  EXPECT_THAT(SizesTable(all).ToTerminal(), HasSubstr("chosen"));
  EXPECT_THAT(SearchTable(all).ToTerminal(), HasSubstr("15.00"));
}

StudyResults Results(double gain) {
  StudyResults r;
  r.nets = {Made("MMT", 4, gain - 0.2), Made("MMT", 32, gain)};
  r.branches = {Made("2 branches", 4, 1.1), Made("16 branches", 4, 2 * gain / 1.5)};
  r.control = {Made("Transformer", 4, gain - 0.5)};
  r.control[0].sequential = Sweep({MadeRun(0, 100)}, 2);
  r.case_nets = {Made("case study", 4, 9), Made("case study", 8, gain - 0.3)};
  r.case_nets[1].pipedream = Sweep({MadeRun(2, 100, 8)}, 20);
  r.case_nets[1].graphpipe = Sweep({MadeRun(0, 100 * (gain - 0.3), 4)}, 2);
  r.case_study.chain = Sweep({MadeRun(2, 100, 8), MadeRun(4, 90, 8)}, 0);
  r.case_study.graph = Sweep({MadeRun(2, 110, 4), MadeRun(4, 80 * gain, 4)}, 0);
  return r;
}

TEST(Claims, AreMetOrMissed) {
  for (const Claim& claim : Claims(Results(1.5))) {
    EXPECT_EQ(claim.state, ClaimState::kMet) << claim.id;
    EXPECT_THAT(CheckClaim(claim), IsOk());
  }
  StudyResults less = Results(1.0);
  less.nets[0] = Made("MMT", 4, 1.2);
  less.nets[1].pipedream.search_time = absl::Seconds(1);
  const std::vector<Claim> claims = Claims(less);
  for (const Claim& claim : claims) {
    EXPECT_EQ(claim.state, ClaimState::kMissed) << claim.id;
    EXPECT_THAT(CheckClaim(claim), IsOk());
  }
  EXPECT_THAT(claims[0].ours, HasSubstr("up to 1.20x, MMT on 4, 0.12x of it by graph stages"));
  EXPECT_THAT(claims[0].reason, HasSubstr("the best sequential plan has depth 4"));
  EXPECT_THAT(claims[0].reason, HasSubstr("nothing could gain more than 1.25x"));
  EXPECT_EQ(claims[1].ours, "MMT 1.20, 1.00");
  EXPECT_THAT(claims[5].ours, HasSubstr("depth 8 to 4, micro-batch 2 to up to 64, -30 %"));
  for (const Claim& claim : Claims(StudyResults())) {
    EXPECT_EQ(claim.state, ClaimState::kNotMade) << claim.id;
    EXPECT_THAT(CheckClaim(claim), IsOk());
  }
}

TEST(Claims, HeadlineDependsOnTheBatch) {
  StudyResults r = Results(1.5);
  r.batches = {Made("MMT", 32, 1.5), Made("MMT", 32, 1.45), Made("MMT", 32, 1.1)};
  r.batches[1].batch_factor = 2;
  r.batches[2].batch_factor = 8;
  const Claim c = Claims(r)[0];
  EXPECT_EQ(c.state, ClaimState::kDependsOn);
  EXPECT_THAT(c.reason, HasSubstr("holds for 1x, 2x; turns at 8x"));
}

// The study's own batch meets both, a smaller one neither.
TEST(Claims, AblationAndCaseStudyDependOnTheBatch) {
  StudyResults r = Results(1.5);
  r.batches = {Made("MMT", 32, 3)};
  r.case_batches = {Made("case study", 8, 1.1)};
  r.batches[0].batch_factor = r.case_batches[0].batch_factor = 0.5;
  const std::vector<Claim> claims = Claims(r);
  for (const int i : {2, 3, 5}) {
    EXPECT_EQ(claims[i].state, ClaimState::kDependsOn) << claims[i].id;
    EXPECT_THAT(claims[i].reason, HasSubstr("holds for 1x; turns at 1x; at 0.5x the batch "));
    EXPECT_THAT(CheckClaim(claims[i]), IsOk());
  }
}

// From fewest to most devices the gap widens, and between these it does not.
TEST(Claims, GrowthIsCheckedAtEveryStep) {
  StudyResults r = Results(1.5);
  r.nets = {Made("MMT", 4, 1.2), Made("MMT", 8, 1.1), Made("MMT", 32, 1.5)};
  r.branches = {Made("2", 4, 1.2), Made("4", 4, 1.1), Made("16", 4, 2)};
  const std::vector<Claim> claims = Claims(r);
  EXPECT_EQ(claims[1].state, ClaimState::kMissed);
  EXPECT_THAT(claims[1].reason, HasSubstr("MMT on 8"));
  EXPECT_EQ(claims[4].state, ClaimState::kMissed);
  EXPECT_THAT(claims[4].reason, HasSubstr("it does not grow at 4"));
}

}  // namespace
}  // namespace pipelab
