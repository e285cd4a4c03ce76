// What the 52B study says of the published methods, held: a change of the cost model or of a
// specification that turns one of them round is seen here.
#include <string>
#include <vector>

#include "experiments/grids/ablation.h"
#include "experiments/grids/batch_sweep.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kDevices = 64;

class OrderingsTest : public testing::Test {
 protected:
  OrderingsTest() {
    grid_.model = &model_;
    grid_.cluster = &cluster_;
    grid_.type = NumberType::kFp16;
  }

  BatchSweep Sweep(const std::vector<int64_t>& batches) {
    return SweepBatches(grid_,
                        {kDevices, batches, PublishedMethods(), /*recompute=*/{Recompute::kBlocks}})
        .value();
  }

  const GroupedModel model_ = GroupByName(FindModel("--model", "gpt-52b").value());
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx1-v100").value();
  StepModel grid_;
};

TEST_F(OrderingsTest, BreadthFirstLeadsBelowOneSampleADevice) {
  const std::vector<int64_t> batches = {8, 16, 32};
  EXPECT_THAT(FasterThan(Sweep(batches), "breadth-first", batches), testing::IsEmpty());
}

TEST_F(OrderingsTest, TheGapOpensUntilBreadthFirstNoLongerFitsAndNoPipelineComesNear) {
  const BatchSweep sweep = Sweep({8, 128, 512});
  const auto tflops = [&](const char* method, int64_t batch) {
    return sweep.Find(method, batch)->tflops_per_device;
  };
  EXPECT_LT(tflops("breadth-first", 8), 1.02 * tflops("depth-first", 8));
  EXPECT_GT(tflops("breadth-first", 128), 1.1 * tflops("depth-first", 128));
  EXPECT_EQ(sweep.Find("breadth-first", 512), nullptr);
  EXPECT_LT(tflops("no pipeline", 8), 0.5 * tflops("non-looped", 8));
  EXPECT_GT(tflops("no pipeline", 128), tflops("depth-first", 128));
}

}  // namespace
}  // namespace pipelab
