#include "pipelines/planners/plan.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/dnn_partitioning_json.h"
#include "models/files/example_files.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_inputs.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Example(absl::string_view name) {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == name) return std::string(file.text);
  }
  ADD_FAILURE() << "no example " << name;
  return "";
}

// embed (1) -> two blocks (3, 5) -> head (7); operators as in the file: 3, 1, 5, 7.
PlanProblem PiperExample() {
  const auto piper = ParsePiper(Example("piper"), "piper.json");
  EXPECT_THAT(piper, IsOk());
  PlanProblem problem = PlanProblemOf(*piper);
  EXPECT_THAT(FinishProblem(&problem, "piper.json"), IsOk());
  return problem;
}

PlanStage Stage(std::vector<int> layers, std::vector<int> variants, int64_t data, int tensor) {
  PlanStage stage;
  stage.layers = std::move(layers);
  stage.variants = std::move(variants);
  stage.data = data;
  stage.tensor = tensor;
  return stage;
}

TEST(PlanProblem, KeepsPipersNumbers) {
  const PlanProblem p = PiperExample();
  ASSERT_EQ(p.size(), 4);
  EXPECT_EQ(p.operators[1].id, "1");
  EXPECT_TRUE(p.integer_ids);
  EXPECT_EQ(p.devices, 4);
  EXPECT_EQ(p.micro_batches, 64);
  const PlanVariant& again = p.operators[0].variants.at(2)[1];
  EXPECT_TRUE(again.recompute);
  EXPECT_EQ(again.time, 0.004);
  EXPECT_EQ(again.in_flight_bytes, 4096);
  EXPECT_THAT(again.in_sync, ElementsAre(4096));
  EXPECT_THAT(TopologicalOrder(p), ElementsAre(1, 0, 2, 3));
}

// By hand: stage 1 is the two blocks on two devices with tensor parallelism; one recomputes.
TEST(PlanCosts, PipersFormulas) {
  const PlanProblem p = PiperExample();
  const std::vector<PlanStage> stages = {Stage({1}, {0}, 2, 1), Stage({0, 2}, {0, 1}, 1, 2),
                                         Stage({3}, {0}, 1, 1)};
  // Copies that come later, of stage 0: 2 + 1 + 1 by 2.
  EXPECT_DOUBLE_EQ(MemoryOfStage(p, stages, 0), 2 * 16384.0 + 24e6);
  EXPECT_DOUBLE_EQ(MemoryOfStage(p, stages, 1), 2 * (32768.125 + 4096.0) + 12000000.5);
  const double sync = 4 * 1 * 8e6 / 2 / 64;
  EXPECT_DOUBLE_EQ(StageValue(p, PlanObjective::kStageTime, stages, 0),
                   0.0015 / 2 + (2 * (8192 + 4096) / 2.0 + sync) / 25e9);
  EXPECT_DOUBLE_EQ(StageValue(p, PlanObjective::kStageTime, stages, 1),
                   0.003 + 0.006 + 2 * (8192 + 4096 + 8192 + 8192 + 4 * 4096) / 25e9);
  EXPECT_DOUBLE_EQ(PlanValue(p, PlanObjective::kStageTime, stages),
                   StageValue(p, PlanObjective::kStageTime, stages, 1));
}

TEST(PlanJson, ReadsBackWhatItWrites) {
  const PlanProblem p = PiperExample();
  Plan plan;
  plan.planner = "by hand";
  plan.state = PlanState::kTimeLimit;
  plan.stages = {Stage({1}, {0}, 2, 1), Stage({0, 2}, {0, 1}, 1, 2), Stage({3}, {0}, 1, 1)};
  plan.stages[0].in_flight = 3;
  plan.stages[1].micro_batch_size = 4;
  plan.value = PlanValue(p, plan.objective, plan.stages);
  plan.lower_bound = 0.001;
  plan.peak_bytes = PeakBytes(p, plan.stages);
  plan.search_time = absl::Milliseconds(250);
  EXPECT_THAT(StageEdges(p, plan), ElementsAre(Pair(0, 1), Pair(1, 2)));
  const std::string text = PlanToJson(plan, p);
  EXPECT_THAT(text, HasSubstr("\"state\": \"time limit\""));
  EXPECT_THAT(text, HasSubstr("\"search_seconds\": 0.25"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan again, ParsePlan(text, "plan.json", p));
  EXPECT_EQ(PlanToJson(again, p), text);
  EXPECT_THAT(again.stages[1].variants, ElementsAre(0, 1));
}

TEST(PlanJson, RefusesInOneLine) {
  const PlanProblem p = PiperExample();
  const auto error = [&](const std::string& text) {
    return std::string(ParsePlan(text, "x.json", p).status().message());
  };
  EXPECT_EQ(error(R"({"stages": [{"layers": [1, 9]}]})"),
            "x.json: stages[0].layers: 9: the input has no such layer");
  EXPECT_THAT(error(R"({"stages": [{"layers": [7], "tensor": 2}]})"),
              HasSubstr("stages[0].tensor: 2: layer 7 has no such degree"));
  EXPECT_THAT(error(R"({"stages": [{"layers": []}]})"), HasSubstr("must have layers"));
  EXPECT_THAT(error(R"({"stages": [{"layers": [1], "data": 0}]})"), HasSubstr("stages[0].data"));
  EXPECT_THAT(error(R"({"state": "good", "stages": []})"), HasSubstr("\"good\" is unknown"));
  EXPECT_THAT(error(R"({"objective": {"name": "speed", "value": 1}, "stages": []})"),
              HasSubstr("\"speed\" is not an objective"));
}

TEST(PlanProblem, OtherFormats) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const PipeDreamProfile profile,
      ParsePipeDreamProfile(Example("pipedream.graph"), "pipedream.graph.txt"));
  PlanProblem p = PlanProblemOf(profile);
  p.devices = 4;
  p.levels = {{4, 1e9}};
  ASSERT_THAT(FinishProblem(&p, "profile"), IsOk());
  EXPECT_EQ(p.size(), static_cast<int>(WithoutInputs(profile).nodes.size()));

  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlacementProblem placement,
                               ParsePlacement(Example("placement"), "placement.json"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanProblem q, PlanProblemOf(placement, "placement.json"));
  ASSERT_THAT(FinishProblem(&q, "placement.json"), IsOk());
  EXPECT_EQ(q.processors, 1);
  EXPECT_EQ(q.operators[0].colour, q.operators[3].colour);
  EXPECT_EQ(q.operators[4].colour, -1);
  EXPECT_FALSE(q.operators[3].on_accelerator);
}

TEST(PlanProblem, ModelsOfTheZoo) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("mmt", "--model"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "summit"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(PlanProblem p,
                               PlanProblemOf(graph, cluster, NumberType::kFp16, 8, 4));
  ASSERT_THAT(FinishProblem(&p, "--model=mmt"), IsOk());
  EXPECT_EQ(p.size(), static_cast<int>(graph.layers.size()));
  EXPECT_GT(p.bandwidth, 1e9);
  double parameters = 0;
  for (const PlanOperator& o : p.operators) parameters += o.variants.at(1)[0].parameter_bytes;
  EXPECT_DOUBLE_EQ(parameters, 4.0 * static_cast<double>(graph.num_parameters()));
}

TEST(PlanProblem, SaysWhatIsWrong) {
  const auto error = [](const std::function<void(PlanProblem*)>& change) {
    PlanProblem p = PiperExample();
    change(&p);
    return std::string(FinishProblem(&p, "in.json").message());
  };
  EXPECT_THAT(error([](PlanProblem* p) {
                p->edges.push_back({0, 2, 0});
              }),
              HasSubstr("operator 3: variant vanilla does not have its edges' sync bytes"));
  EXPECT_EQ(error([](PlanProblem* p) { p->bandwidth = 0; }),
            "in.json: bandwidth 0: must be above 0");
  EXPECT_EQ(error([](PlanProblem* p) { p->devices = 0; }),
            "in.json: 0 devices: there must be at least 1");
  EXPECT_EQ(error([](PlanProblem* p) { p->operators[2].variants[1][0].time = -1; }),
            "in.json: operator 5: time -1: must be finite and not negative");
  EXPECT_EQ(error([](PlanProblem* p) {
              p->edges.push_back({3, 1, 0});
              for (PlanOperator& o : p->operators) {
                for (auto& [t, variants] : o.variants) {
                  for (PlanVariant& v : variants) v.in_sync.clear(), v.out_sync.clear();
                }
              }
            }),
            "in.json: cyclic operators: 3 comes after itself, or after a cycle");
  EXPECT_THAT(error([](PlanProblem* p) {
                p->objective = PlanObjective::kPipeDream;
                p->levels = {{3, 1e9}};
              }),
              HasSubstr("the levels have 3 devices in all, the machine 4"));
}

TEST(UniformPlan, EqualNumbers) {
  PlanProblem p = PiperExample();
  p.devices = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("uniform", p, {}));
  EXPECT_EQ(plan.planner, "uniform");
  EXPECT_EQ(plan.state, PlanState::kFeasible);
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_THAT(plan.stages[0].layers, ElementsAre(0, 1));
  EXPECT_THAT(plan.stages[2].layers, ElementsAre(3));
  EXPECT_GE(plan.value, plan.lower_bound);
  PlannerOptions options;
  options.stages = 5;
  EXPECT_THAT(MakePlan("uniform", p, options).status().message(),
              HasSubstr("--stages=5: must be from 1 to 3"));
  p.memory_bytes = 1e6;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan none, MakePlan("uniform", p, {}));
  EXPECT_EQ(none.state, PlanState::kInfeasible);
  EXPECT_THAT(MakePlan("best", p, {}).status().message(),
              HasSubstr("--planner=best: no such planner; there are uniform"));
}

}  // namespace
}  // namespace pipelab
