// A model with branches, trained for real in pipelines whose stages form a graph: like the serial
// loop, to the bit, in chains of stages with skips and in parallel stages; memory as predicted, to
// the byte; and GraphPipe's point, that parallel stages need fewer micro-batches in flight.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/mmt.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kGraphSteps = 8;

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
      losses = SerialLosses(*BuildMmt(config), SmallSerial(*batches_, micro_batches), kGraphSteps);
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
    result.config = options.config;
    result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
    ASSERT_TRUE(SumsInLayerOrder(graph, training->partition()));
    bit_equal_ += result.must_be_bit_equal;
    result.losses = LossesAsPredicted(training.get(), kGraphSteps);
    const Equality equality = CompareLosses(result, Serial(config, options.config.micro_batches));
    EXPECT_TRUE(equality.ok) << equality.text;
    ++checked_;
  }

  TrainingOptions Parallel(const MmtConfig& config, const std::string& scheme, int stages_of_branch,
                           int devices, int micro_batches) {
    TrainingOptions options = SmallTraining(scheme, devices, micro_batches);
    options.config.layout = StagesText(*MmtParallelStages(config, stages_of_branch));
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
    if (!TrainsAsSerial(scheme)) continue;
    for (bool recompute : {false, true}) {
      for (const auto& [devices, micro_batches] :
           std::vector<std::pair<int, int>>{{2, 3}, {4, 8}, {6, 4}}) {
        TrainingOptions options = SmallTraining(std::string(scheme.name), devices, micro_batches);
        options.config.recompute = RecomputeIf(recompute);
        if (!Serves(options.config)) continue;
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
          options.config.recompute = RecomputeIf(recompute);
          if (!Serves(options.config)) continue;
          Check(config, options);
        }
        if (stages % 2 == 0) {
          TrainingOptions options =
              Parallel(config, "breadth_first", c.stages_of_branch, stages / 2, micro_batches);
          options.config.virtual_stages = 2;
          options.config.recompute = RecomputeIf(recompute);
          if (MakeSchedule("breadth_first", SchemeSizes(options.config)).ok())
            Check(config, options);
        }
      }
      TrainingOptions options =
          Parallel(config, "graph", c.stages_of_branch, stages, micro_batches);
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
  SchemeParams sizes = SchemeSizes(options.config);
  sizes.stages = MakePartition(*BuildMmt(config), *MmtParallelStages(config, 1))->stages;
  sizes.devices_of_stage = {{0, 1}, {2, 3}, {4}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", sizes));
  Check(config, options);
  EXPECT_EQ(bit_equal_, 0);
}

// The layout's text and the list of stages say the same.
TEST_F(GraphModel, LayoutsNameAnyLayers) {
  const MmtConfig config = SmallMmt(2, 1);  // 3 layers a branch, then join and head
  TrainingOptions options = SmallTraining("1f1b", 3, 4);
  options.config.layout = "0-2;3,4,5;6-8";
  Check(config, options);
  options.config.scheme = "graph";
  Check(config, options);
  options.config.scheme = "1f1b";
  options.config.layout = "0,3;1-2;4-8";  // both embeddings together, then branch after branch
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

// Processor time of each stage's passes: medians over these traces, each with its program.
void TakeMeasuredTimes(const std::vector<std::pair<const Program*, const Trace*>>& traces,
                       CostTable* costs) {
  std::map<std::pair<int, ActionKind>, std::vector<int64_t>> times;
  for (const auto& [program, trace] : traces) {
    for (size_t d = 0; d < trace->devices.size(); ++d) {
      for (const ExecutedInstruction& span : SpansOf(*program, *trace, d)) {
        if (span.op != OpCode::kCompute) continue;
        times[{span.action.stage, span.action.kind}].push_back(span.cpu_ns);
      }
    }
  }
  const auto median = [&](int stage, ActionKind kind) {
    std::vector<int64_t>& all = times[{stage, kind}];
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return Nanoseconds(all[all.size() / 2]);
  };
  for (int s = 0; s < static_cast<int>(costs->stages.size()); ++s) {
    StageCost& stage = costs->stages[s];
    stage.forward = median(s, ActionKind::kForward);
    stage.backward_input = median(s, ActionKind::kBackward);
    stage.backward_weight = stage.step = Nanoseconds(0);
  }
}

// GraphPipe's point, for real: a multi-modal Transformer of four branches on four devices, each
// with a branch, the last with the join too. As a graph of stages and as a sequential pipeline of
// the same stages, in which each waits for the one before, it trains as the serial loop does, to
// the bit. The graph holds less, and its step is shorter.
TEST_F(GraphModel, GraphBeatsTheSequentialPipelineOnFourDevices) {
  const MmtConfig config = SmallMmt(4, 2);
  const ModelGraph graph = *BuildMmt(config);
  std::vector<int> stage_of_layer = *MmtParallelStages(config, 1);
  for (int& stage : stage_of_layer) stage = std::min(stage, 3);
  std::map<bool, std::unique_ptr<PipelineTraining>> training;
  std::map<bool, std::vector<Trace>> traces;
  std::map<bool, Bytes> peak;
  for (const bool sequential : {false, true}) {
    TrainingOptions options = SmallTraining(sequential ? "1f1b" : "graph", 4, 8);
    options.config.layout = StagesText(stage_of_layer);
    options.sequential = sequential;
    Check(config, options);
    PIPELAB_ASSERT_OK_AND_ASSIGN(training[sequential],
                                 PipelineTraining::Create(graph, *batches_, options));
    for (int step = 0; step < kGraphSteps; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(TrainingStep done, training[sequential]->Step());
      traces[sequential].push_back(std::move(done.trace));
    }
    for (const DeviceTrace& device : traces[sequential].back().devices) {
      peak[sequential] = std::max(peak[sequential], device.peak_activation);
    }
  }
  EXPECT_EQ(bit_equal_, 2);
  EXPECT_LT(peak[false] * 3, peak[true] * 2);  // 2 micro-batches in flight, and 4
  // With one measured time for each stage's pass in both, so that only the order differs.
  std::vector<std::pair<const Program*, const Trace*>> all;
  for (const auto& [sequential, of_run] : traces) {
    const Program& program = training[sequential]->program();
    for (const Trace& trace : of_run) all.emplace_back(&program, &trace);
  }
  std::map<bool, Nanoseconds> step;
  for (const bool sequential : {false, true}) {
    CostTable costs = training[sequential]->costs();
    TakeMeasuredTimes(all, &costs);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace replayed,
                                 Simulate(training[sequential]->program(), costs));
    step[sequential] = replayed.makespan;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace own,
                                 Replay(training[sequential]->program(), traces[sequential]));
    std::printf(
        "%-10s  measured peak of a device: %lld bytes; replayed step: %.3f ms, from its "
        "own times alone %.3f ms\n",
        sequential ? "sequential" : "graph", static_cast<long long>(peak[sequential].value()),
        ToSeconds(step[sequential]) * 1e3, ToSeconds(own.makespan) * 1e3);
  }
  EXPECT_LT(step[false], step[true]);
}

// Tokens of a chain between stages of several devices, and to receivers that may not have come.
TEST_F(GraphModel, SequentialPipelinesOfGroupsTrain) {
  const MmtConfig config = SmallMmt(3, 2);
  TrainingOptions options = Parallel(config, "1f1b", 1, 4, 4);
  options.config.data = 2;
  options.config.micro_batch_size = kSmallSamples / 2;
  options.sequential = true;
  Check(config, options);
  options.rendezvous = true;
  Check(config, options);
  EXPECT_EQ(checked_, 2);
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
  options.config.layout = "3-5;0-2;6";
  expect(options, "--layout=3-5;0-2;6", "layer 7 is in no stage");
  options.config.layout = "6-8;0-2;3-5";
  expect(options, "--layout=6-8;0-2;3-5", "\"join/concat\" is in stage 0");
  options.config.layout = "0-5;6-8";
  expect(options, "--layout=0-5;6-8", "2 stages, but the scheme has 3");
  // A schedule of other edges than the layers have.
  options = Parallel(config, "graph", 1, 3, 4);
  SchemeParams sizes = SchemeSizes(options.config);
  sizes.stages = StageGraph::FromEdges(3, {{0, 1}, {0, 2}, {1, 2}});
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", sizes));
  expect(options, "edge 0-1", "in the schedule, and not in the layers' stages");
}

}  // namespace
}  // namespace pipelab
