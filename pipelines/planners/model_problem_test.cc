#include "pipelines/planners/model_problem.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/mmt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/layer_times.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

class ModelProblemTest : public testing::Test {
 protected:
  ModelProblemTest() {
    MmtConfig config = PublishedMmt();
    config.branches = 2;
    config.layers = 2;
    model_.graph = *BuildMmt(config);
    // A group a branch, and one for the join and the head.
    for (const LayerSpec& layer : model_.graph.layers) {
      const char first = layer.name[6];  // "branch0/..."
      model_.group_of_layer.push_back(layer.name.compare(0, 6, "branch") == 0 ? first - '0' : 2);
    }
    options_.devices = 8;
    options_.micro_batch_size = 2;
    options_.batch_samples = 16;
    options_.micro_batch_sizes = {1, 2, 4};
  }

  PlanProblem Problem() {
    auto problem = ModelProblem(model_.graph, cluster_, options_);
    EXPECT_THAT(problem, IsOk());
    EXPECT_THAT(FinishProblem(&*problem, "mmt"), IsOk());
    return *std::move(problem);
  }

  GroupedModel model_;
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx-a100").value();
  ModelProblemOptions options_;
};

TEST_F(ModelProblemTest, GroupsAddUpTheirLayers) {
  const PlanProblem layers = Problem();
  options_.group_of_layer = model_.group_of_layer;
  const PlanProblem groups = Problem();
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(layers.size(), static_cast<int>(model_.graph.layers.size()));
  EXPECT_EQ(groups.micro_batches, 8);
  EXPECT_EQ(groups.operators[0].id, "branch0");
  for (const PlanOperator& group : groups.operators) {
    PlanVariant sum;
    sum.times.resize(3);
    for (int i : group.layers) {
      const PlanVariant& layer = layers.operators[i].variants.at(1)[0];
      sum.time += layer.time;
      sum.parameter_bytes += layer.parameter_bytes;
      sum.in_flight_bytes += layer.in_flight_bytes;
      for (int s = 0; s < 3; ++s) sum.times[s].time += layer.times[s].time;
    }
    const PlanVariant& all = group.variants.at(1)[0];
    EXPECT_NEAR(all.time, sum.time, 1e-12);
    EXPECT_EQ(all.parameter_bytes, sum.parameter_bytes);
    EXPECT_EQ(all.in_flight_bytes, sum.in_flight_bytes);
    EXPECT_EQ(all.time, all.times[1].time);
    for (int s = 0; s < 3; ++s) EXPECT_NEAR(all.times[s].time, sum.times[s].time, 1e-12);
  }
  // Each branch hands its last layer's output to the join: 256 tokens of 1024 numbers, 2 samples.
  ASSERT_EQ(groups.edges.size(), 2);
  for (const PlanEdge& edge : groups.edges) {
    EXPECT_EQ(edge.to, 2);
    EXPECT_EQ(edge.bytes, 2 * 256 * 1024 * 4);
    EXPECT_EQ(groups.operators[edge.from].output_bytes, edge.bytes);
  }
}

TEST_F(ModelProblemTest, RecomputingKeepsWhatComesIn) {
  options_.group_of_layer = model_.group_of_layer;
  const PlanProblem p = Problem();
  for (const PlanOperator& op : p.operators) {
    const PlanVariant &plain = op.variants.at(1)[0], &again = op.variants.at(1)[1];
    EXPECT_TRUE(again.recompute);
    EXPECT_NEAR(again.time, plain.time + plain.forward_time, 1e-12);
    EXPECT_LT(again.in_flight_bytes, plain.in_flight_bytes);
    EXPECT_EQ(again.in_flight_bytes + again.fixed_bytes, plain.in_flight_bytes + plain.fixed_bytes);
  }
  EXPECT_EQ(p.operators[0].variants.at(1)[1].in_flight_bytes, 0);
  options_.recompute = false;
  EXPECT_EQ(Problem().operators[0].variants.at(1).size(), 1);
}

TEST_F(ModelProblemTest, LevelsAreAsLargeAsTheDevicesNeed) {
  for (const auto& [devices, sizes] :
       std::vector<std::pair<int64_t, std::vector<int64_t>>>{{4, {4}}, {8, {8}}, {32, {8, 4}}}) {
    options_.devices = devices;
    PlanProblem p = Problem();
    std::vector<int64_t> made;
    for (const PlanLevel& level : p.levels) made.push_back(level.devices);
    EXPECT_EQ(made, sizes);
    p.objective = PlanObjective::kPipeDream;
    EXPECT_THAT(FinishProblem(&p, "mmt"), IsOk());
    EXPECT_GT(p.latency, 0);
  }
}

TEST_F(ModelProblemTest, TimesBetweenSizes) {
  const PlanProblem p = Problem();
  const PlanVariant& v = p.operators[1].variants.at(1)[0];
  EXPECT_EQ(TimesOfSamples(p, v, 4).time, v.times[2].time);
  EXPECT_EQ(TimesOfSamples(p, v, 1).forward, v.times[0].forward);
  EXPECT_DOUBLE_EQ(TimesOfSamples(p, v, 3).time, (v.times[1].time + v.times[2].time) / 2);
  EXPECT_DOUBLE_EQ(TimesOfSamples(p, v, 0.5).time, v.times[0].time / 2);
  EXPECT_DOUBLE_EQ(TimesOfSamples(p, v, 8).time, v.times[2].time * 2);
  options_.micro_batch_sizes.clear();
  const PlanProblem q = Problem();
  EXPECT_DOUBLE_EQ(TimesOfSamples(q, q.operators[1].variants.at(1)[0], 4).time, v.time * 2);
}

TEST_F(ModelProblemTest, SizesThatDoNotFit) {
  options_.batch_samples = 15;
  EXPECT_THAT(ModelProblem(model_.graph, cluster_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("micro-batches of 2")));
  options_.batch_samples = 16;
  options_.group_of_layer = {0, 0};
  EXPECT_THAT(ModelProblem(model_.graph, cluster_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("groups of 2 layers")));
  PlanProblem p = [&] {
    options_.group_of_layer.clear();
    return Problem();
  }();
  p.micro_batch_sizes = {4, 2, 1};
  EXPECT_THAT(FinishProblem(&p, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must ascend")));
  p.micro_batch_sizes = {1};
  EXPECT_THAT(FinishProblem(&p, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 sizes")));
}

}  // namespace
}  // namespace pipelab
