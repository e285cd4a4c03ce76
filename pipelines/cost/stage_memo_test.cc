#include "pipelines/cost/stage_memo.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/graph/alike_layers.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/stage_costs.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// All numbers of a stage's cost.
std::vector<int64_t> AllNumbers(StageCost c) {
  std::vector<int64_t> n = {
      c.forward.value(),   c.backward_input.value(), c.backward_weight.value(),
      c.recompute.value(), c.step.value(),           c.merged_saving.value()};
  const StageMemory& m = c.memory;
  for (const Bytes b :
       {m.state, m.weights, m.optimizer, m.statistics, m.gradients, m.expert_gradients,
        c.tensor_traffic.forward, c.tensor_traffic.backward_input, c.tensor_traffic.backward_weight,
        c.tensor_traffic.step}) {
    n.push_back(b.value());
  }
  for (const Bytes* b : c.memory.Activations()) n.push_back(b->value());
  for (const auto* pass : {&c.statistics.forward, &c.statistics.backward_input}) {
    for (const TensorCollective& t : *pass) n.push_back(t.bytes.value());
  }
  return n;
}

// Up to twelve ranges of layers.
std::vector<int> RandomCuts(int layers, const CounterRng& rng, uint64_t* draw) {
  std::vector<int> first = {0};
  const uint64_t cuts = rng.Below((*draw)++, 12);
  for (uint64_t i = 0; i < cuts && layers > 1; ++i) {
    first.push_back(1 + static_cast<int>(rng.Below((*draw)++, layers - 1)));
  }
  std::sort(first.begin(), first.end());
  first.erase(std::unique(first.begin(), first.end()), first.end());
  return first;
}

// Blocks of five layers, every other one rebuilt.
std::vector<int> SomeBlocks(const ModelGraph& graph) {
  std::vector<int> blocks(graph.layers.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int block = static_cast<int>(i / 5);
    blocks[i] = block % 2 == 0 || graph.layers[i].inputs.empty() ? -1 : block;
  }
  return blocks;
}

StageCostOptions OnMachine(int64_t degree) {
  StageCostOptions options;
  options.machine = Machine{LoadCluster("--cluster", "dgx-a100")->device, NumberType::kBf16};
  options.tensor = {{degree, degree > 1}, {Microseconds(1), BytesPerSecond(1e9)}};
  return options;
}

// One memo for all partitions of a model.
void ExpectSameCosts(const std::string& name, const ModelGraph& graph,
                     const StageCostOptions& options) {
  SCOPED_TRACE(name);
  const CounterRng rng(7, name);
  uint64_t draw = 0;
  StageCostMemo memo(graph, FirstAlike(graph));
  for (int round = 0; round < 4; ++round) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        ModelPartition partition,
        MakeRangePartition(graph, RandomCuts(static_cast<int>(graph.layers.size()), rng, &draw)));
    if (round % 2 == 1) partition.block_of_layer = SomeBlocks(graph);
    const absl::StatusOr<CostTable> alone = ComputeStageCosts(graph, partition, 2, options);
    const absl::StatusOr<CostTable> known = ComputeStageCosts(graph, partition, 2, options, &memo);
    ASSERT_EQ(alone.status(), known.status());
    if (!alone.ok()) continue;
    for (int s = 0; s < partition.num_stages(); ++s) {
      ASSERT_EQ(AllNumbers(alone->stages[s]), AllNumbers(known->stages[s])) << "stage " << s;
    }
  }
}

TEST(StageCostMemo, KnowsWhatIsComputed) {
  for (const PublishedModel& m : PublishedModels()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, m.build());
    ExpectSameCosts(m.name, graph, StageCostOptions());
    for (const int64_t degree : {1, 2}) ExpectSameCosts(m.name, graph, OnMachine(degree));
  }
}

TEST(StageCostMemo, TellsTiesToOtherStagesApart) {
  ModelGraph graph = *BuildPublished("gpt-6.6b");
  const int layers = static_cast<int>(graph.layers.size());
  graph.layers[1].parameters[0].tie = "tied";
  graph.layers[layers - 2].parameters[0].tie = "tied";
  ExpectSameCosts("tied", graph, OnMachine(1));
}

}  // namespace
}  // namespace pipelab
