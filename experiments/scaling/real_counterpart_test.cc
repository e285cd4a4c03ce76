#include "experiments/scaling/real_counterpart.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

RealNet TinyNet() {
  GptConfig config;
  config.layers = 2;
  config.hidden = 32;
  config.heads = 2;
  config.tokens = 16;
  config.vocabulary = 50;
  RealNet net;
  net.id = "tiny";
  net.title = "a tiny GPT";
  net.model.graph = *BuildGpt(config);
  for (size_t i = 0; i < net.model.graph.layers.size(); ++i) {
    net.model.group_of_layer.push_back(static_cast<int>(i));
  }
  return net;
}

RealCounterpartOptions Quick() {
  RealCounterpartOptions options;
  options.devices = {1, 2, 4};
  options.micro_batches = {1, 4};
  options.batch_samples = 4;
  options.rounds = 2;
  options.calibration = QuickCalibration();
  options.progress = false;
  return options;
}

TEST(RealCounterpart, MeasuresReplaysAndSimulatesTheGrid) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealCounterpart real, RunRealCounterpart(TinyNet(), Quick()));
  ASSERT_EQ(real.points.size(), 6);
  EXPECT_EQ(real.machine.name, "measured");
  for (const RealPoint& p : real.points) {
    EXPECT_EQ(p.micro_batch_size * p.micro_batches, 4);
    EXPECT_EQ(p.groups_of_stage.size(), p.devices);
    EXPECT_EQ(p.steps, 2);
    EXPECT_GT(p.measured, Nanoseconds(0));
    EXPECT_GT(p.replayed, Nanoseconds(0));
    EXPECT_GT(p.simulated, Nanoseconds(0));
  }
  EXPECT_EQ(real.points[3].devices, 2);
  EXPECT_EQ(real.points[3].micro_batches, 4);
  EXPECT_LE(real.MedianError(), real.LargestError());
  const Table table = RealCounterpartTable(real);
  EXPECT_THAT(table.status(), IsOk());
  EXPECT_EQ(table.rows().size(), 6);
}

TEST(RealCounterpart, SimulatesWithTheGivenMachineAlone) {
  RealCounterpartOptions options = Quick();
  options.rounds = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.machine, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealCounterpart a, RunRealCounterpart(TinyNet(), options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealCounterpart b, RunRealCounterpart(TinyNet(), options));
  EXPECT_EQ(a.machine.name, "dgx-a100");
  for (size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].simulated, b.points[i].simulated);  // nothing of the runs is in it
  }
}

TEST(RealCounterpart, SaysWhatDoesNotFit) {
  RealCounterpartOptions options = Quick();
  options.micro_batches = {3};
  EXPECT_THAT(RunRealCounterpart(TinyNet(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("M=3: must divide the 4")));
  options = Quick();
  options.devices = {64};
  EXPECT_THAT(RunRealCounterpart(TinyNet(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("64")));
  EXPECT_THAT(ScaledDown("vgg"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"vgg\"")));
}

TEST(ScaledDown, NetsAreOfTheirFamilies) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealNet amoebanet, ScaledDown("amoebanet"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealNet transformer, ScaledDown("transformer"));
  for (const RealNet* net : {&amoebanet, &transformer}) {
    EXPECT_GE(net->model.num_groups(), 8);
    EXPECT_THAT(Validate(net->model.graph), IsOk());
    EXPECT_LT(net->model.graph.num_parameters(), 5e6);
  }
}

}  // namespace
}  // namespace pipelab
