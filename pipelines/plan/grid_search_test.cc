#include "pipelines/plan/grid_search.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/plan/grid_bounds.h"
#include "pipelines/plan/grid_breakdown.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class GridSearchTest : public testing::Test {
 protected:
  GridSearchTest() {
    GptConfig c;
    c.layers = 16;
    c.hidden = 2048;
    c.heads = 16;
    c.tokens = 512;
    c.vocabulary = 8192;
    model_ = GroupByName(BuildGpt(c).value());
    grid_.model = &model_;
    grid_.cluster = &cluster_;
    search_.devices = 16;
    search_.batch = 16;
    search_.methods = PublishedMethods();
    for (GridMethod& m : NewerMethods()) search_.methods.push_back(std::move(m));
  }

  GroupedModel model_;
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx1-v100").value();
  GridModel grid_;
  GridSearch search_;
};

TEST(NodeDevices, AreThoseOfANode) {
  for (const auto& [name, devices] : {std::make_pair("dgx1-v100", 8), std::make_pair("dgx-a100", 8),
                                      std::make_pair("dgx-h100", 8), std::make_pair("summit", 3),
                                      std::make_pair("p100-pcie", 8)}) {
    EXPECT_EQ(NodeDevices(LoadCluster("--cluster", name).value()), devices) << name;
  }
}

TEST_F(GridSearchTest, GroupsAreBlocks) { EXPECT_EQ(model_.num_groups(), 18); }

// Against simulating everything: with no bounds nothing is faster than what the search found.
TEST_F(GridSearchTest, EqualsSimulatingAll) {
  for (const GridMethod& method : search_.methods) {
    SCOPED_TRACE(method.name);
    GridSearch one = search_;
    one.methods = {method};
    const auto found = SearchGrid(grid_, one);
    one.top = 1 << 20;  // never full: all are simulated
    const auto all = SearchGrid(grid_, one);
    ASSERT_EQ(found.ok(), all.ok());
    if (!found.ok()) continue;
    EXPECT_EQ(found->best[0].step_time, all->best[0].step_time);
    EXPECT_LE(found->refusals.simulated, all->refusals.simulated);
    EXPECT_LE(found->best[0].largest_device, cluster_.device.memory.value);
  }
}

// No simulated step is below its bound, nor any device's memory below its share of the state.
TEST_F(GridSearchTest, BoundsHold) {
  GridBounds bounds(grid_);
  int checked = 0;
  for (const GridMethod& method : search_.methods) {
    for (const int pipeline : {1, 2, 4, 8}) {
      for (const int tensor : {1, 2}) {
        for (const bool recompute : {false, true}) {
          for (const Sharding sharding : method.shardings) {
            GridConfig c;
            c.scheme = method.schemes[0];
            c.loops = method.loops[0];
            c.pipeline = pipeline;
            c.tensor = tensor;
            c.data = 16 / pipeline / tensor;
            c.micro_batches = 8;
            c.recompute = recompute;
            c.sharding = sharding;
            const auto point = EvaluateGrid(grid_, c);
            if (!point.ok()) continue;
            SCOPED_TRACE(c.ToString());
            PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds least, bounds.LeastTime(c));
            EXPECT_LE(least, point->step_time);
            EXPECT_GT(least, Nanoseconds(0));
            EXPECT_LE(bounds.LeastState(c), point->largest_device);
            PIPELAB_ASSERT_OK_AND_ASSIGN(const GridBreakdown b, BreakDown(grid_, *point));
            EXPECT_NEAR(
                b.compute + b.recompute + b.tensor + b.step + b.bubble + b.pipeline + b.data, 1,
                1e-9);
            EXPECT_GE(b.data, -0.02);
            EXPECT_GE(b.bubble, -1e-9);
            EXPECT_EQ(b.tensor > 0, tensor > 1);
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GE(checked, 100);
}

TEST_F(GridSearchTest, SaysWhatBinds) {
  const auto message = [&](const GridSearch& s) {
    return std::string(SearchGrid(grid_, s).status().message());
  };
  GridSearch s = search_;
  s.batch = 0;
  EXPECT_EQ(message(s), "--batch=0: must be at least 1");
  s = search_;
  s.devices = 5000;
  EXPECT_EQ(message(s), "--gpus=5000: must be from 1 to 1024, the devices of dgx1-v100");
  ClusterSpec small = cluster_;
  small.device.memory.value = Bytes(1 << 20);
  GridModel model = grid_;
  model.cluster = &small;
  const std::string memory = std::string(SearchGrid(model, search_).status().message());
  EXPECT_THAT(memory, HasSubstr("no configuration of 16 devices of dgx1-v100 for --batch=16: "
                                "memory binds; the nearest, "));
  EXPECT_THAT(memory, HasSubstr("GiB of 0.00"));
}

TEST(GridConfigText, IsReadBack) {
  GridConfig c;
  c.scheme = "interleaved";
  c.pipeline = 8;
  c.tensor = 4;
  c.data = 2;
  c.loops = 4;
  c.micro_batch_samples = 2;
  c.micro_batches = 16;
  c.sharding = Sharding::kFully;
  c.recompute = c.sequence_parallel = true;
  c.residency = Residency::kMicroBatch;
  c.overlap_pipeline = c.overlap_data = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GridConfig again, ParseGridConfig("--c", c.ToString()));
  EXPECT_EQ(again.ToString(), c.ToString());
  EXPECT_EQ(again.devices(), 64);
  EXPECT_EQ(again.batch(), 64);
  const auto message = [](const char* text) {
    return std::string(ParseGridConfig("--explain", text).status().message());
  };
  EXPECT_THAT(message("1f1b:Q=2"), HasSubstr("--explain=1f1b:Q=2: \"Q=2\": must be P="));
  EXPECT_THAT(message("1f1b:P=x"), HasSubstr("\"P=x\": must be a whole number of at least 1"));
  EXPECT_THAT(message("1f1b:fast"), HasSubstr("\"fast\": must be"));
}

}  // namespace
}  // namespace pipelab
