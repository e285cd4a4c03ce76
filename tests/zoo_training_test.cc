// Every small net of the zoo, trained for real in pipelines: like the serial loop, to the bit, in
// chains of stages and in parallel ones; memory as predicted, to the byte.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/training/comparison.h"
#include "gtest/gtest.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "models/zoo/branch_stages.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kZooSteps = 4;

class ZooTraining : public testing::TestWithParam<int> {
 protected:
  // The serial loop, adding gradients up as the partition's stages do.
  std::vector<double> Serial(const TrainingOptions& options, const ModelPartition& partition) {
    SerialOptions serial = SmallSerial(data_, options.config.micro_batches);
    if (!SumsInLayerOrder(graph_, partition)) serial.stage_of_layer = partition.stage_of_layer;
    return SerialLosses(graph_, serial, kZooSteps);
  }

  void Check(const TrainingOptions& options) {
    SCOPED_TRACE(testing::Message() << graph_.name << ", " << Describe(options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data_, options));
    SchemeResult result;
    result.config = options.config;
    result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
    EXPECT_TRUE(result.must_be_bit_equal);
    result.losses = LossesAsPredicted(training.get(), kZooSteps);
    const Equality equality = CompareLosses(result, Serial(options, training->partition()));
    EXPECT_TRUE(equality.ok) << equality.text;
    // The steps change the loss, and differ from one another.
    EXPECT_EQ(std::set<double>(result.losses.begin(), result.losses.end()).size(),
              static_cast<size_t>(kZooSteps));
    ++checked_;
  }

  const ModelGraph graph_ = SmallNets(/*dropout=*/0.1, Activation::kRelu)[GetParam()];
  const RandomData data_{TestFieldsOf(graph_)};
  int checked_ = 0;
};

TEST_P(ZooTraining, ChainsOfStagesTrainAsSerial) {
  for (const char* scheme : {"gpipe", "1f1b", "breadth_first", "zb_h1", "graph"}) {
    for (bool recompute : {false, true}) {
      for (const auto& [devices, micro_batches] :
           std::vector<std::pair<int, int>>{{1, 3}, {2, 4}, {4, 5}}) {
        TrainingOptions options = SmallTraining(scheme, devices, micro_batches);
        options.config.recompute = RecomputeIf(recompute);
        if (!Serves(options.config)) continue;
        Check(options);
      }
    }
  }
  EXPECT_GE(checked_, 24);
}

TEST_P(ZooTraining, ParallelBranchesTrainAsSerial) {
  for (int stages_of_branch : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto stages, BranchStages(graph_, stages_of_branch));
    const int devices = *std::max_element(stages.begin(), stages.end()) + 1;
    for (int micro_batches : {1, 4}) {
      TrainingOptions options = SmallTraining("graph", devices, micro_batches);
      options.config.layout = StagesText(stages);
      Check(options);
      options.config.scheme = "1f1b";
      Check(options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, ZooTraining, testing::Range(0, 8), [](const auto& info) {
  return SmallNets(0, Activation::kRelu)[info.param].name;
});

}  // namespace
}  // namespace pipelab
