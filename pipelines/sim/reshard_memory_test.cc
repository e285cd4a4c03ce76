// Parts that are put together and rows that stay, by hand.
#include "pipelines/sim/reshard_memory.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/hand_costs.h"

namespace pipelab {
namespace {

Schedule Placed(StageGraph stages, std::vector<std::vector<int>> groups, int micro_batches = 1) {
  Schedule s;
  s.stages = std::move(stages);
  s.num_micro_batches = micro_batches;
  s.placement.groups = {std::move(groups)};
  s.placement.replica_of_micro_batch.assign(micro_batches, 0);
  s.placement.num_devices = 3;
  return s;
}

CostTable EdgesOf(const Schedule& s, const std::vector<int>& bytes) {
  CostTable costs = HandCosts(s);
  for (size_t e = 0; e < bytes.size(); ++e) costs.edge_bytes[e] = Bytes(bytes[e]);
  return costs;
}

// The bytes of a forward, before and after it, and of a backward.
std::vector<int64_t> PartsOf(const ReshardMemoryTable& table, int device, int stage,
                             int micro_batch = 0, int slice = 0) {
  Action a;
  a.stage = static_cast<int16_t>(stage);
  a.micro_batch = micro_batch;
  a.slice = static_cast<int16_t>(slice);
  const ReshardMemory forward = table.Of(device, 0, a);
  a.kind = ActionKind::kBackwardInput;
  const ReshardMemory input = table.Of(device, 0, a);
  a.kind = ActionKind::kBackward;
  const ReshardMemory backward = table.Of(device, 0, a);
  EXPECT_EQ(input.before, backward.before);
  EXPECT_EQ(input.after, backward.after);
  for (const ActionKind kind : {ActionKind::kBackwardWeight, ActionKind::kRecompute}) {
    a.kind = kind;
    EXPECT_EQ(table.Of(device, 0, a).before + table.Of(device, 0, a).after, 0);
  }
  return {forward.before, forward.after, backward.before, backward.after};
}

using Parts = std::vector<int64_t>;
constexpr Reads kNone = Reads::None();

// Device 1 has half of its input's rows itself and is sent the others: it puts the whole together,
// and of the gradient that it makes a half stays. Outputs that go in one part need nothing.
TEST(ReshardMemory, PutsTheRowsOfAGroupTogether) {
  const Schedule s = Placed(StageGraph::Chain(2), {{0, 1}, {1}});
  const CostTable costs = EdgesOf(s, {1200});
  const ReshardMemoryTable table(s, costs);
  EXPECT_TRUE(table.any());
  EXPECT_EQ(PartsOf(table, 0, 0), (Parts{0, 0, 0, 0}));
  EXPECT_EQ(PartsOf(table, 1, 0), (Parts{0, 0, 0, 0}));
  EXPECT_EQ(PartsOf(table, 1, 1), (Parts{1200, 0, 0, 600}));
  // Where no gradient comes back there is none to divide.
  const Schedule alone = Placed(StageGraph::FromEdges(2, {{0, 1, kNone}}), {{0, 1}, {1}});
  const ReshardMemoryTable no_gradient(alone, costs);
  EXPECT_TRUE(no_gradient.any());
  EXPECT_EQ(PartsOf(no_gradient, 1, 1), (Parts{1200, 0, 0, 0}));
  const Schedule chain = Placed(StageGraph::Chain(2), {{0}, {1}});
  EXPECT_FALSE(ReshardMemoryTable(chain, costs).any());
  const Schedule same = Placed(StageGraph::Chain(2), {{0, 1}, {0, 1}});
  EXPECT_FALSE(ReshardMemoryTable(same, costs).any());
}

// The other way round: half of an output stays, and its gradient comes in two parts.
TEST(ReshardMemory, KeepsItsOwnRowsForAGroup) {
  const Schedule s = Placed(StageGraph::Chain(2), {{0}, {0, 1}});
  const CostTable costs = EdgesOf(s, {1200});
  const ReshardMemoryTable table(s, costs);
  EXPECT_TRUE(table.any());
  EXPECT_EQ(PartsOf(table, 0, 0), (Parts{0, 600, 1200, 0}));
  EXPECT_EQ(PartsOf(table, 0, 1), (Parts{0, 0, 0, 0}));
  const Schedule alone = Placed(StageGraph::FromEdges(2, {{0, 1, kNone}}), {{0}, {0, 1}});
  const ReshardMemoryTable no_gradient(alone, costs);
  EXPECT_TRUE(no_gradient.any());
  EXPECT_EQ(PartsOf(no_gradient, 0, 0), (Parts{0, 600, 0, 0}));
}

// Tensors are put together one after the other, and what stays of each is there until the last has
// left.
TEST(ReshardMemory, AddsUpWhatStaysOfSeveralEdges) {
  const Schedule fork = Placed(StageGraph::FromEdges(3, {{0, 1}, {0, 2}}), {{0}, {0, 1}, {0, 1}});
  const CostTable costs = EdgesOf(fork, {800, 1200});
  EXPECT_EQ(PartsOf(ReshardMemoryTable(fork, costs), 0, 0), (Parts{0, 400 + 600, 1200, 0}));
  const Schedule join = Placed(StageGraph::FromEdges(3, {{0, 2}, {1, 2}}), {{0, 1}, {0, 1}, {1}});
  EXPECT_EQ(PartsOf(ReshardMemoryTable(join, costs), 1, 2), (Parts{1200, 0, 0, 400 + 600}));
  const CostTable equal = EdgesOf(join, {1200, 1200});
  const ReshardMemoryTable table(join, equal);
  EXPECT_TRUE(table.any());
  EXPECT_EQ(PartsOf(table, 1, 2), (Parts{1200, 0, 0, 600 + 600}));
}

// On one device a larger micro-batch is put together of two. Its gradients are divided one edge
// after the other: where nothing is sent, nothing stays for later.
TEST(ReshardMemory, PutsMicroBatchesTogether) {
  Schedule s = Placed(StageGraph::FromEdges(3, {{0, 2}, {1, 2}}), {{0}, {0}, {0}}, 2);
  s.micro_batches_of_stage = {2, 2, 1};
  const CostTable costs = EdgesOf(s, {1200, 800});
  const ReshardMemoryTable table(s, costs);
  EXPECT_EQ(PartsOf(table, 0, 2), (Parts{2400, 0, 0, 2400}));
  for (const int micro_batch : {0, 1}) {
    EXPECT_EQ(PartsOf(table, 0, 0, micro_batch), (Parts{0, 0, 0, 0}));
  }
}

// Two small micro-batches go to three devices: the first of each two leaves two thirds on device 0,
// the second has none there.
TEST(ReshardMemory, RepeatsAfterALargerMicroBatch) {
  Schedule s = Placed(StageGraph::Chain(2), {{0}, {0, 1, 2}}, 4);
  s.micro_batches_of_stage = {4, 2};
  const CostTable costs = EdgesOf(s, {1200});
  const ReshardMemoryTable table(s, costs);
  for (const int micro_batch : {0, 2}) {
    EXPECT_EQ(PartsOf(table, 0, 0, micro_batch), (Parts{0, 800, 1200, 0}));
    EXPECT_EQ(PartsOf(table, 0, 0, micro_batch + 1), (Parts{0, 0, 1200, 0}));
  }
}

// Slices have equal parts of a tensor, or bytes of their own.
TEST(ReshardMemory, IsOfASlice) {
  Schedule s = Placed(StageGraph::Chain(2), {{0, 1}, {1}});
  s.num_slices = 2;
  const CostTable equal = EdgesOf(s, {1200});
  const ReshardMemoryTable halves(s, equal);
  const CostTable costs = SliceTable(s);
  const ReshardMemoryTable own(s, costs);
  for (const int slice : {0, 1}) {
    EXPECT_EQ(PartsOf(halves, 1, 1, 0, slice), (Parts{600, 0, 0, 300}));
    const int64_t bytes = slice == 0 ? 300 : 700;
    EXPECT_EQ(PartsOf(own, 1, 1, 0, slice), (Parts{bytes, 0, 0, bytes / 2}));
  }
}

}  // namespace
}  // namespace pipelab
