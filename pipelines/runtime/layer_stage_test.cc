#include "pipelines/runtime/layer_stage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "tests/support/layer_pipeline.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr int kChainMicroBatches = 4;
constexpr int64_t kChainSamples = 2, kChainTokens = 6;

LayerStageOptions ChainOptions(const BatchSource* data) {
  LayerStageOptions o;
  o.micro_batch_size = kChainSamples;
  o.data = data;
  o.seed = 11;
  o.optimizer.adam.learning_rate = 0.01f;
  o.optimizer.adam.weight_decay = 0.1f;
  o.batch_tokens = kChainMicroBatches * kChainSamples * kChainTokens;
  return o;
}

std::unique_ptr<SerialTrainer> MakeSerial(const ModelGraph& graph, Backend* backend,
                                          const BatchSource* data) {
  const LayerStageOptions from = ChainOptions(data);
  SerialOptions o;
  o.micro_batch_size = kChainSamples;
  o.num_micro_batches = kChainMicroBatches;
  o.data = data;
  o.seed = from.seed;
  o.optimizer = from.optimizer;
  auto trainer = SerialTrainer::Create(graph, backend, o);
  CHECK(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

struct Partition {
  std::vector<int> first_layers;
  bool tied;
  DriveOrder order;
};

class EqualsSerial : public testing::TestWithParam<Partition> {};

TEST_P(EqualsSerial, ToTheBitOverFiveSteps) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(/*dropout=*/0.1, GetParam().tied));
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  const auto serial = MakeSerial(graph, backend.get(), &data);
  LayerPipeline pipeline(graph, GetParam().first_layers, kChainMicroBatches, ChainOptions(&data));
  for (int step = 0; step < 5; ++step) {
    ASSERT_THAT(serial->Step(), IsOk());
    EXPECT_EQ(pipeline.Step(GetParam().order), serial->losses()) << "step " << step;
  }
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      EXPECT_EQ(pipeline.Value(p.name), *serial->ParameterValue(p.name)) << p.name;
    }
  }
}

std::vector<Partition> Partitions() {
  std::vector<Partition> all;
  for (const std::vector<int>& first_layers :
       {std::vector<int>{0}, {0, 3}, {0, 1, 5}, {0, 2, 3}, {0, 1, 2, 3, 4, 5}}) {
    for (bool tied : {false, true}) {
      for (DriveOrder order : {DriveOrder::kOneByOne, DriveOrder::kAllForward,
                               DriveOrder::kRecompute, DriveOrder::kSplitBackward}) {
        all.push_back({first_layers, tied, order});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Partitions, EqualsSerial, testing::ValuesIn(Partitions()));

TEST(LayerStage, TrainingChangesEveryParameterAndDropoutMatters) {
  const RandomTokens data(kChainTokens, 11);
  std::vector<std::vector<double>> losses;
  for (double dropout : {0.0, 0.1}) {
    const ModelGraph graph = *BuildGpt(SmallGpt(dropout, true));
    LayerPipeline pipeline(graph, {0, 3}, kChainMicroBatches, ChainOptions(&data));
    std::map<std::string, std::vector<float>> before;
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) before[p.name] = pipeline.Value(p.name);
    }
    losses.push_back(pipeline.Step(DriveOrder::kOneByOne));
    for (const auto& [name, value] : before) EXPECT_NE(pipeline.Value(name), value) << name;
  }
  EXPECT_NE(losses[0], losses[1]);
}

TEST(LayerStage, TiesAreOfStagesThatShare) {
  const ModelGraph tied = *BuildGpt(SmallGpt(0, true)), untied = *BuildGpt(SmallGpt(0, false));
  const auto ties_of = [](const ModelGraph& graph, std::vector<int> first_layers) {
    return StageTies(graph, *MakeRangePartition(graph, first_layers));
  };
  const std::vector<Tie> ties = ties_of(tied, {0, 2, 4});
  ASSERT_EQ(ties.size(), 1);
  EXPECT_EQ(ties[0].parameter, "embedding");
  EXPECT_EQ(ties[0].stages, (std::vector<int>{0, 2}));
  EXPECT_TRUE(ties_of(tied, {0}).empty());
  EXPECT_TRUE(ties_of(untied, {0, 2, 4}).empty());
}

TEST(LayerStage, GradientsAreFlatAndOfEqualSizeWhereShared) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(0, true));
  LayerPipeline two(graph, {0, 3}, kChainMicroBatches, ChainOptions(&data));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor first, two.stage(0).Gradients("embedding"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor last, two.stage(1).Gradients("embedding"));
  EXPECT_EQ(first.size(), 11 * 16);
  EXPECT_EQ(last.size(), 11 * 16);
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor own0, two.stage(0).Gradients(""));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor own1, two.stage(1).Gradients(""));
  EXPECT_EQ(own0.size() + own1.size() + 11 * 16, graph.num_parameters());
  EXPECT_THAT(two.stage(0).Gradients("nothing"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"nothing\"")));
  first = last = own0 = own1 = Tensor();
  // In one stage the tie is its own affair.
  LayerPipeline one(graph, {0}, kChainMicroBatches, ChainOptions(&data));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor all, one.stage(0).Gradients(""));
  EXPECT_EQ(all.size(), graph.num_parameters());
  EXPECT_THAT(one.stage(0).Gradients("embedding"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("embedding")));
}

// A member of a group computes its rows; the members' gradients add up to the whole's, but for
// rounding.
TEST(LayerStage, MembersOfAGroupShareTheSamples) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(0.2, true));
  std::vector<double> sum;
  double loss = 0;
  const auto run = [&](int data_parallel_size, int member) {
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    LayerStageOptions o = ChainOptions(&data);
    o.data_parallel_size = data_parallel_size;
    o.member = member;
    auto stage = *LayerStage::Create(graph, 0, 6, backend.get(), o);
    CHECK(stage->Forward(MakeAction(ActionKind::kForward, 0, 1), {}, false).ok());
    CHECK(stage->Backward(MakeAction(ActionKind::kBackward, 0, 1), {}).ok());
    loss += stage->losses().at(1);
    const Tensor g = *stage->Gradients("");
    sum.resize(g.size(), 0);
    for (int64_t i = 0; i < g.size(); ++i) sum[i] += g.f32()[i];
  };
  run(1, 0);
  std::vector<double> whole;
  std::swap(whole, sum);
  const double whole_loss = std::exchange(loss, 0);
  run(2, 0);
  run(2, 1);
  EXPECT_NEAR(loss, whole_loss, 1e-5 * whole_loss);
  // Sums of some hundred terms, each carried through about twenty float operations in a row.
  double largest = 0;
  for (double g : whole) largest = std::max(largest, std::abs(g));
  const double tolerance = 100 * std::numeric_limits<float>::epsilon() * largest;
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(sum[i], whole[i], tolerance) << i;
}

// Folding a tie's gradients early, as an asynchronous reduction might, changes rounding only.
TEST(LayerStage, GradientsMayBeReadBetweenMicroBatches) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(0, true));
  std::vector<float> gradients[2];
  for (bool between : {false, true}) {
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    auto stage = *LayerStage::Create(graph, 0, 6, backend.get(), ChainOptions(&data));
    for (int m = 0; m < 3; ++m) {
      ASSERT_THAT(stage->Forward(MakeAction(ActionKind::kForward, 0, m), {}, false), IsOk());
      ASSERT_THAT(stage->Backward(MakeAction(ActionKind::kBackward, 0, m), {}), IsOk());
      if (between) {
        ASSERT_THAT(stage->Gradients(""), IsOk());
      }
    }
    const Tensor g = *stage->Gradients("");
    gradients[between].assign(g.f32().begin(), g.f32().end());
  }
  // Each sum of six terms may round differently in each of its steps.
  float largest = 0;
  for (float g : gradients[0]) largest = std::max(largest, std::abs(g));
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    ASSERT_NEAR(gradients[1][i], gradients[0][i],
                6 * std::numeric_limits<float>::epsilon() * largest);
  }
}

TEST(LayerStage, EvaluatesWithoutDropoutAndLeavesNothing) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(0.5, false));
  Arena serial_arena;
  const auto backend = MakeCpuBackend(&serial_arena);
  const auto serial = MakeSerial(graph, backend.get(), &data);
  LayerPipeline pipeline(graph, {0, 3}, kChainMicroBatches, ChainOptions(&data));
  double loss = 0;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto x, pipeline.stage(0).Evaluate(data, 7, 3, 5, {}, &loss));
  ASSERT_EQ(x.size(), 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto y,
                               pipeline.stage(1).Evaluate(data, 7, 3, 5, std::move(x), &loss));
  EXPECT_TRUE(y.empty());
  EXPECT_EQ(loss / (5 * kChainTokens), *serial->Evaluate(data, 7, 3, 5));
  EXPECT_EQ(pipeline.stage(0).in_flight(), 0);
  EXPECT_EQ(pipeline.arena(0).current_transient(), Bytes(0));
  EXPECT_EQ(pipeline.arena(1).current_transient(), Bytes(0));
  EXPECT_TRUE(pipeline.stage(1).losses().empty());
}

// Weights, moments and the step make a checkpoint: a pipeline of another partition goes on from it
// to the bit.
TEST(LayerStage, ResumesFromCopiedState) {
  const RandomTokens data(kChainTokens, 11);
  const ModelGraph graph = *BuildGpt(SmallGpt(0.1, false));
  LayerPipeline two(graph, {0, 3}, kChainMicroBatches, ChainOptions(&data)),
      three(graph, {0, 1, 4}, kChainMicroBatches, ChainOptions(&data));
  for (int i = 0; i < 3; ++i) two.Step(DriveOrder::kOneByOne);
  const ModelPartition partition = *MakeRangePartition(graph, {0, 1, 4});
  for (int s = 0; s < 3; ++s) {
    for (int i : partition.layers[s]) {
      for (const ParameterSpec& p : graph.layers[i].parameters) {
        for (StateKind kind :
             {StateKind::kValue, StateKind::kFirstState, StateKind::kSecondState}) {
          ASSERT_THAT(three.stage(s).parameters().Set(p.name, kind, two.Value(p.name, kind)),
                      IsOk());
        }
      }
    }
    ASSERT_THAT(three.stage(s).SetTrainingStep(two.stage(0).training_step()), IsOk());
  }
  EXPECT_EQ(three.Step(DriveOrder::kAllForward), two.Step(DriveOrder::kOneByOne));
  EXPECT_EQ(three.Value("block0/mlp/w1"), two.Value("block0/mlp/w1"));
  EXPECT_THAT(three.stage(0).parameters().Set("head/table", StateKind::kValue, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"head/table\"")));
  EXPECT_THAT(three.stage(2).parameters().Set("head/gamma", StateKind::kValue, {1, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("16 elements, not 2")));
}

}  // namespace
}  // namespace pipelab
