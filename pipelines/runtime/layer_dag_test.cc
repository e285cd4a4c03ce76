// Stages of models that are DAGs: any partition trains as the serial loop does, to the bit, and
// holds what stage costs predict, to the byte.
#include <set>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_graphs.h"
#include "models/layers/test_layers.h"
#include "tests/support/layer_pipeline.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kDagMicroBatches = 3;
constexpr int64_t kDagSamples = 2, kDagTokens = 6;
constexpr int kDagSteps = 3;
constexpr int kSeeds = 12;

using StepLosses = std::vector<std::vector<double>>;  // [step][micro-batch]

LayerStageOptions DagOptions(const BatchSource* data) {
  LayerStageOptions o;
  o.micro_batch_size = kDagSamples;
  o.data = data;
  o.seed = 11;
  o.optimizer.adam.learning_rate = 0.01f;
  o.batch_tokens = kDagMicroBatches * kDagSamples * kDagTokens;
  return o;
}

StepLosses TrainSerially(const ModelGraph& graph, std::vector<int> stage_of_layer) {
  const RandomTokens data(kDagTokens, 11);
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  const LayerStageOptions from = DagOptions(&data);
  SerialOptions o;
  o.micro_batch_size = kDagSamples;
  o.num_micro_batches = kDagMicroBatches;
  o.data = &data;
  o.seed = from.seed;
  o.optimizer = from.optimizer;
  o.stage_of_layer = std::move(stage_of_layer);
  auto trainer = SerialTrainer::Create(graph, backend.get(), o);
  CHECK(trainer.ok()) << trainer.status();
  StepLosses losses;
  for (int step = 0; step < kDagSteps; ++step) {
    CHECK((*trainer)->Step().ok());
    losses.push_back((*trainer)->losses());
    EXPECT_EQ(arena.current_transient(), Bytes(0));
  }
  return losses;
}

StepLosses TrainInStages(const ModelGraph& graph, const ModelPartition& partition,
                         DriveOrder order) {
  const RandomTokens data(kDagTokens, 11);
  LayerPipeline pipeline(graph, partition, kDagMicroBatches, DagOptions(&data));
  StepLosses losses;
  for (int step = 0; step < kDagSteps; ++step) {
    losses.push_back(pipeline.Step(order));
    for (int s = 0; s < pipeline.num_stages(); ++s) {
      EXPECT_EQ(pipeline.arena(s).current_transient(), Bytes(0)) << "stage " << s;
    }
  }
  return losses;
}

// What the random graphs and stages must have somewhere, or the tests say little.
struct Seen {
  int fan_outs = 0;                     // outputs of three or more consumers
  int skips = 0;                        // edges that pass by a stage
  int double_edges = 0;                 // two edges between the same stages
  int shared_outputs = 0;               // outputs that leave on several edges
  int same_order = 0, other_order = 0;  // partitions whose sums are in layer order, or not
};

void Count(const ModelGraph& graph, const ModelPartition& p, Seen* seen) {
  for (const std::vector<int>& consumers : Consumers(graph)) seen->fan_outs += consumers.size() > 2;
  std::set<std::pair<int, int>> pairs;
  std::set<int> leaving;
  for (size_t e = 0; e < p.stages.edges.size(); ++e) {
    const StageGraph::Edge& edge = p.stages.edges[e];
    seen->skips += edge.to > edge.from + 1;
    seen->double_edges += !pairs.emplace(edge.from, edge.to).second;
    seen->shared_outputs += !leaving.insert(p.edge_layer[e]).second;
  }
  ++(SumsInLayerOrder(graph, p) ? seen->same_order : seen->other_order);
}

class LayerDag : public testing::TestWithParam<DriveOrder> {};

TEST_P(LayerDag, TrainsAsTheSerialLoopToTheBit) {
  Seen seen;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const ModelGraph graph = RandomGraph(8 + seed, seed, /*dropout=*/seed % 2 == 0 ? 0 : 0.1);
    const StepLosses serial = TrainSerially(graph, {});
    for (int most_stages : {1, 3, 6}) {
      const std::vector<int> stages = RandomStages(graph, most_stages, seed);
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", stages " << testing::PrintToString(stages));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition, MakePartition(graph, stages));
      Count(graph, partition, &seen);
      const StepLosses pipeline = TrainInStages(graph, partition, GetParam());
      if (GetParam() != DriveOrder::kRecompute) {
        ModelPartition rebuilt = partition;
        for (int i = 0; i < static_cast<int>(stages.size()); ++i) {
          rebuilt.block_of_layer.push_back(i % 7 == 3 ? -1 : i / 2);
        }
        EXPECT_EQ(TrainInStages(graph, rebuilt, GetParam()), pipeline);
      }
      EXPECT_EQ(pipeline, TrainSerially(graph, stages));
      EXPECT_EQ(pipeline[0], serial[0]);  // before the first update there are no sums
      if (SumsInLayerOrder(graph, partition)) {
        EXPECT_EQ(pipeline, serial);
      }
    }
  }
  EXPECT_GT(seen.fan_outs, 10);
  EXPECT_GT(seen.skips, 10);
  EXPECT_GT(seen.double_edges, 5);
  EXPECT_GT(seen.shared_outputs, 5);
  EXPECT_GT(seen.same_order, 5);
  EXPECT_GT(seen.other_order, 2);
}

INSTANTIATE_TEST_SUITE_P(Orders, LayerDag,
                         testing::Values(DriveOrder::kOneByOne, DriveOrder::kAllForward,
                                         DriveOrder::kRecompute, DriveOrder::kSplitBackward));

// Sums in another order differ by rounding: the two comparisons above are not one.
TEST(LayerDagBits, OrderOfSumsShowsInTheBits) {
  int different = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const ModelGraph graph = RandomGraph(8 + seed, seed, 0);
    const std::vector<int> stages = RandomStages(graph, 6, seed);
    different += TrainSerially(graph, stages) != TrainSerially(graph, {});
  }
  EXPECT_GT(different, 0);
}

TEST(LayerDagBits, EvaluatesAsTheSerialLoop) {
  const RandomTokens data(kDagTokens, 11);
  const ModelGraph graph = RandomGraph(14, 3, /*dropout=*/0.5);
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  SerialOptions o;
  o.data = &data;
  o.seed = 11;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto serial, SerialTrainer::Create(graph, backend.get(), o));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double expected, serial->Evaluate(data, 7, 3, 5));
  const ModelPartition p = *MakePartition(graph, RandomStages(graph, 4, 3));
  LayerPipeline pipeline(graph, p, kDagMicroBatches, DagOptions(&data));
  std::vector<Tensor> on_edge(p.stages.edges.size());
  double loss = 0;
  for (int s = 0; s < p.num_stages(); ++s) {
    std::vector<Tensor> inputs;
    for (int e : p.stages.in_edges[s]) inputs.push_back(std::move(on_edge[e]));
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        std::vector<Tensor> outputs,
        pipeline.stage(s).Evaluate(data, 7, 3, 5, std::move(inputs), &loss));
    for (size_t k = 0; k < outputs.size(); ++k) {
      on_edge[p.stages.out_edges[s][k]] = std::move(outputs[k]);
    }
  }
  EXPECT_EQ(loss / (5 * kDagTokens), expected);
}

}  // namespace
}  // namespace pipelab
