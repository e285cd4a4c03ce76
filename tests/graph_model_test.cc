// A model with branches, trained for real in pipelines whose stages form a graph: like the serial
// loop, to the bit, in chains of stages with skips and in parallel stages; memory as predicted, to
// the byte; and GraphPipe's point, that parallel stages need fewer micro-batches in flight.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "experiments/comparison.h"
#include "experiments/training.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/mmt.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kSteps = 8;

MmtConfig SmallMmt(int branches, int layers) {
  MmtConfig c;
  c.branches = branches;
  c.layers = layers;
  c.hidden = 16;
  c.heads = 2;
  c.tokens = kSmallTokens;
  c.feed_forward = 40;
  c.vocabulary = SmallText()->vocabulary();
  c.dropout = 0.1;
  return c;
}

class GraphModel : public testing::Test {
 protected:
  // Kept by graph and micro-batches: many schedules are compared with each.
  const std::vector<double>& Serial(const MmtConfig& config, int micro_batches) {
    std::vector<double>& losses = serial_[{config.branches, config.layers, micro_batches}];
    if (losses.empty()) {
      losses = SerialLosses(*BuildMmt(config), SmallSerial(*batches_, micro_batches), kSteps);
    }
    return losses;
  }

  // Trains, compares with the serial loop, and memory with its prediction.
  void Check(const MmtConfig& config, const TrainingOptions& options) {
    const ModelGraph graph = *BuildMmt(config);
    SCOPED_TRACE(testing::Message() << config.branches << " branches of " << config.layers << ", "
                                    << Describe(options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                 PipelineTraining::Create(graph, *batches_, options));
    SchemeResult result;
    result.scheme = options.scheme;
    result.sizes = options.sizes;
    result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
    ASSERT_TRUE(SumsInLayerOrder(graph, training->partition()));
    bit_equal_ += result.must_be_bit_equal;
    result.losses = LossesAsPredicted(training.get(), kSteps);
    const Equality equality = CompareLosses(result, Serial(config, options.sizes.micro_batches));
    EXPECT_TRUE(equality.ok) << equality.text;
    ++checked_;
  }

  TrainingOptions Parallel(const MmtConfig& config, const std::string& scheme, int stages_of_branch,
                           int devices, int micro_batches) {
    TrainingOptions options = SmallTraining(scheme, devices, micro_batches);
    options.stage_of_layer = *MmtParallelStages(config, stages_of_branch);
    return options;
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  std::map<std::vector<int64_t>, std::vector<double>> serial_;
  int checked_ = 0, bit_equal_ = 0;
};

// Stages are ranges of layers, one branch after the other: a chain of stages, with skips from the
// branches' ends to the join.
TEST_F(GraphModel, ChainsOfStagesWithSkipsTrainAsSerial) {
  const MmtConfig config = SmallMmt(3, 2);
  for (const Scheme& scheme : Catalog()) {
    if (scheme.asynchronous) continue;  // not like serial training
    for (bool recompute : {false, true}) {
      for (const auto& [devices, micro_batches] :
           std::vector<std::pair<int, int>>{{2, 3}, {4, 8}, {6, 4}}) {
        TrainingOptions options = SmallTraining(std::string(scheme.name), devices, micro_batches);
        options.sizes.recompute = recompute;
        if (!MakeSchedule(scheme.name, options.sizes).ok()) continue;
        Check(config, options);
      }
    }
  }
  EXPECT_GT(checked_, 40);
  EXPECT_GT(bit_equal_, 25);
}

// A stage for each part of each branch, one for the join: the stages are a graph.
TEST_F(GraphModel, ParallelStagesTrainAsSerial) {
  struct Case {
    int branches, layers, stages_of_branch;
  };
  for (const Case& c :
       {Case{2, 1, 1}, Case{3, 2, 1}, Case{4, 2, 1}, Case{2, 2, 2}, Case{3, 3, 3}}) {
    const MmtConfig config = SmallMmt(c.branches, c.layers);
    const int stages = c.branches * c.stages_of_branch + 1;
    for (int micro_batches : {1, 4, 7}) {
      for (bool recompute : {false, true}) {
        for (const char* scheme : {"gpipe", "1f1b", "zb_h1"}) {
          TrainingOptions options =
              Parallel(config, scheme, c.stages_of_branch, stages, micro_batches);
          options.sizes.recompute = recompute;
          if (!MakeSchedule(scheme, options.sizes).ok()) continue;
          Check(config, options);
        }
        if (stages % 2 == 0) {
          TrainingOptions options =
              Parallel(config, "breadth_first", c.stages_of_branch, stages / 2, micro_batches);
          options.sizes.chunks = 2;
          options.sizes.recompute = recompute;
          if (MakeSchedule("breadth_first", options.sizes).ok()) Check(config, options);
        }
      }
      TrainingOptions options =
          Parallel(config, "graph", c.stages_of_branch, stages, micro_batches);
      options.sizes.stages = MakePartition(*BuildMmt(config), options.stage_of_layer)->stages;
      Check(config, options);
    }
  }
  EXPECT_GT(checked_, 70);
  EXPECT_EQ(bit_equal_, checked_);
}

// The sends of a stage with several successors, to receivers that may not have come yet.
TEST_F(GraphModel, SendsMayWaitForReceivers) {
  const MmtConfig config = SmallMmt(3, 2);
  TrainingOptions options = Parallel(config, "graph", 2, 7, 6);
  options.rendezvous = true;
  Check(config, options);
  options = SmallTraining("1f1b", 5, 6);
  options.rendezvous = true;
  Check(config, options);
}

// Branches shared by two devices each, by rows, and a join on one: rows from two devices meet
// there.
TEST_F(GraphModel, GroupsShareTheRowsOfABranch) {
  const MmtConfig config = SmallMmt(2, 1);
  TrainingOptions options = Parallel(config, "graph", 1, 5, 4);
  options.sizes.stages = MakePartition(*BuildMmt(config), options.stage_of_layer)->stages;
  options.sizes.devices_of_stage = {{0, 1}, {2, 3}, {4}};
  Check(config, options);
  EXPECT_EQ(bit_equal_, 0);
}

// The layout's text and the list of stages say the same.
TEST_F(GraphModel, LayoutsNameAnyLayers) {
  const MmtConfig config = SmallMmt(2, 1);  // 3 layers a branch, then join and head
  TrainingOptions options = SmallTraining("1f1b", 3, 4);
  options.layout = "0-2;3,4,5;6-8";
  Check(config, options);
  options.scheme = "graph";
  Check(config, options);
  options.scheme = "1f1b";
  options.layout = "0,3;1-2;4-8";  // both embeddings together, then branch after branch
  Check(config, options);
}

// GraphPipe on four devices: three branches beside one another and the join. The same stages as a
// chain keep 4, 3, 2 and 1 micro-batches in flight; as a graph 2, 2, 2 and 1.
TEST_F(GraphModel, ParallelStagesHoldLessThanTheChain) {
  const MmtConfig config = SmallMmt(3, 2);
  const ModelGraph graph = *BuildMmt(config);
  std::map<std::string, Bytes> peak;
  for (const char* scheme : {"1f1b", "graph"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        auto training,
        PipelineTraining::Create(graph, *batches_, Parallel(config, scheme, 1, 4, 8)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
    std::vector<int64_t> peaks;
    for (const DeviceTrace& device : step.trace.devices) {
      peaks.push_back(device.peak_activation.value());
      peak[scheme] = std::max(peak[scheme], device.peak_activation);
    }
    std::printf("%-5s  measured peak activation memory by device: %s bytes\n", scheme,
                absl::StrJoin(peaks, ", ").c_str());
  }
  EXPECT_LT(peak["graph"], peak["1f1b"]);
}

TEST_F(GraphModel, WhatDoesNotFitIsNamed) {
  const MmtConfig config = SmallMmt(2, 1);
  const ModelGraph graph = *BuildMmt(config);
  const auto expect = [&](const TrainingOptions& options, const char* first, const char* second) {
    EXPECT_THAT(
        PipelineTraining::Create(graph, *batches_, options),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(first), HasSubstr(second))));
  };
  TrainingOptions options = SmallTraining("1f1b", 3, 4);
  options.layout = "3-5;0-2;6";
  expect(options, "--layout=3-5;0-2;6", "layer 7 is in no stage");
  options.layout = "6-8;0-2;3-5";
  expect(options, "--layout=6-8;0-2;3-5", "\"join/concat\" is in stage 0");
  options.layout = "0-5;6-8";
  expect(options, "--layout=0-5;6-8", "2 stages, but the scheme has 3");
  options.layout.clear();
  options.stage_of_layer = {0, 0, 0, 0, 0, 0, 1, 1, 1};
  expect(options, "the layers are in 2 stages", "the schedule has 3");
  options.stage_of_layer = {0, 1};
  expect(options, "the 9 layers", "not of 2");
  // A schedule of other edges than the layers have.
  options = Parallel(config, "graph", 1, 3, 4);
  options.sizes.stages = StageGraph::FromEdges(3, {{0, 1}, {0, 2}, {1, 2}});
  expect(options, "edge 0-1", "in the schedule, and not in the layers' stages");
}

}  // namespace
}  // namespace pipelab
