#include "pipelines/search/search.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/search/order_bound.h"
#include "pipelines/search/step_bounds.h"
#include "pipelines/step/step_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class SearchTest : public StepTest {
 protected:
  SearchTest() {
    search_.devices = 16;
    search_.batch = 16;
    search_.methods = PublishedMethods();
    for (SearchMethod& m : NewerMethods()) search_.methods.push_back(std::move(m));
  }

  SearchRequest search_;
};

TEST(NodeDevices, AreThoseOfANode) {
  for (const auto& [name, devices] : {std::make_pair("dgx1-v100", 8), std::make_pair("dgx-a100", 8),
                                      std::make_pair("dgx-h100", 8), std::make_pair("summit", 3),
                                      std::make_pair("p100-pcie", 8)}) {
    EXPECT_EQ(NodeDevices(LoadCluster("--cluster", name).value()), devices) << name;
  }
}

TEST_F(SearchTest, GroupsAreBlocks) { EXPECT_EQ(model_.num_groups(), 18); }

std::vector<std::string> Lines(const std::vector<RankedStep>& results) {
  std::vector<std::string> lines;
  for (const RankedStep& r : results) {
    lines.push_back(absl::StrCat(r.method, " ", r.config.ToString(), " ", r.step_time.value(), " ",
                                 r.largest_device.value(), " ", r.tflops_per_device));
  }
  return lines;
}

struct SearchCase {
  const char* cluster;
  int64_t batch;
  double memory;  // of a device, of what the cluster's have
  bool tied_embeddings;
};

class SearchOf : public testing::TestWithParam<SearchCase> {};

// Against simulating everything: the same of every method, to the nanosecond, in the same order.
TEST_P(SearchOf, EqualsSimulatingAll) {
  const SearchCase& of = GetParam();
  const GroupedModel model = SmallGpt(of.tied_embeddings);
  ClusterSpec cluster = LoadCluster("--cluster", of.cluster).value();
  Bytes& memory = cluster.device.memory.value;
  memory = Bytes(static_cast<int64_t>(static_cast<double>(memory.value()) * of.memory));
  StepModel grid;
  grid.model = &model;
  grid.cluster = &cluster;
  SearchRequest search;
  search.devices = 16;
  search.batch = of.batch;
  search.methods = PublishedMethods();
  for (SearchMethod& m : NewerMethods()) search.methods.push_back(std::move(m));
  search.top = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(grid, search));
  SearchRequest exhaustive = search;
  exhaustive.simulate_all = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult all, Search(grid, exhaustive));
  EXPECT_EQ(Lines(found.best), Lines(all.best));
  EXPECT_LT(2 * found.refusals.simulated, all.refusals.simulated);
  EXPECT_EQ(all.refusals.memory > 0, of.memory < 1);
  for (const RankedStep& r : found.best) EXPECT_LE(r.largest_device, memory);
}

INSTANTIATE_TEST_SUITE_P(Cases, SearchOf,
                         testing::Values(SearchCase{"dgx1-v100", 16, 1, false},
                                         SearchCase{"dgx1-v100", 48, 0.1, false},
                                         SearchCase{"dgx-a100", 4, 0.02, false},
                                         SearchCase{"dgx-a100", 32, 0.03, true},
                                         SearchCase{"dgx-h100", 256, 0.05, false}));

// On 16 devices.
std::vector<StepConfig> ConfigsOf(const SearchMethod& method,
                                  const std::vector<Sharding>& shardings) {
  std::vector<StepConfig> configs;
  for (const int pipeline : {1, 2, 4, 8}) {
    for (const int tensor : {1, 2}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        for (const Sharding sharding : shardings) {
          StepConfig& c = configs.emplace_back();
          c.scheme = method.schemes[0];
          c.virtual_stages = method.virtual_stages.empty() ? 0 : method.virtual_stages[0];
          c.pipeline = pipeline;
          c.tensor = tensor;
          c.data = 16 / pipeline / tensor;
          c.micro_batches = 8;
          c.recompute = recompute;
          c.sharding = sharding;
          c.overlap_pipeline = method.overlap_pipeline;
          c.overlap_data = method.overlap_data;
          c.execution = method.execution;
        }
      }
    }
  }
  return configs;
}

// No simulated step is below its bounds, nor any device's memory.
TEST_F(SearchTest, BoundsHold) {
  StepCache cache(grid_);
  StepBounds bounds(&cache);
  OrderBound orders(&cache);
  int checked = 0, close = 0;
  for (const SearchMethod& method : search_.methods) {
    for (const StepConfig& c : ConfigsOf(method, {Sharding::kReplicated, Sharding::kOptimizer,
                                                  Sharding::kGradients, Sharding::kFully})) {
      const auto point = PredictStep(&cache, c);
      if (!point.ok()) continue;
      SCOPED_TRACE(c.ToString());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds least, bounds.LeastTime(c));
      EXPECT_LE(least, point->step_time);
      EXPECT_GT(least, Nanoseconds(0));
      EXPECT_LE(bounds.LeastState(c), point->largest_device);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const OrderLeast of_order, orders.Of(c));
      EXPECT_LE(of_order.time, point->step_time);
      EXPECT_LE(of_order.memory, point->largest_device);
      close += of_order.time / point->step_time > 0.95;
      ++checked;
    }
  }
  EXPECT_GE(checked, 500);
  EXPECT_GT(close, checked / 2);
}

TEST_F(SearchTest, BreakdownsAddUp) {
  int checked = 0;
  for (const SearchMethod& method : search_.methods) {
    for (const StepConfig& c : ConfigsOf(method, method.shardings)) {
      const auto point = PredictStep(grid_, c);
      if (!point.ok()) continue;
      SCOPED_TRACE(c.ToString());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const StepBreakdown b, BreakDown(grid_, *point));
      EXPECT_NEAR(b.compute + b.recompute + b.tensor + b.step + b.idle + b.pipeline + b.data, 1,
                  1e-9);
      EXPECT_GE(b.data, -0.02);
      EXPECT_GE(b.idle, -1e-9);
      EXPECT_EQ(b.tensor > 0, c.tensor > 1);
      ++checked;
    }
  }
  EXPECT_GE(checked, 100);
}

TEST_F(SearchTest, SaysWhatBinds) {
  const auto message = [&](const SearchRequest& s) {
    return std::string(Search(grid_, s).status().message());
  };
  SearchRequest s = search_;
  s.batch = 0;
  EXPECT_EQ(message(s), "--batch=0: must be at least 1");
  s = search_;
  s.devices = 5000;
  EXPECT_EQ(message(s), "--gpus=5000: must be from 1 to 1024, the devices of dgx1-v100");
  ClusterSpec small = cluster_;
  small.device.memory.value = Bytes(1 << 20);
  StepModel model = grid_;
  model.cluster = &small;
  const std::string memory = std::string(Search(model, search_).status().message());
  EXPECT_THAT(memory, HasSubstr("no configuration of 16 devices of dgx1-v100 for --batch=16: "
                                "memory binds; the nearest, "));
  EXPECT_THAT(memory, HasSubstr("GiB of 0.00"));
}

}  // namespace
}  // namespace pipelab
