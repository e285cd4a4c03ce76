#include "experiments/modern/flash_attention.h"

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(FlashAttention2, RatesOfTheTable) {
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("H100", 128, 4096), 294);
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("H100-96GB-500W", 64, 512), 141);
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("A100-40GB", 128, 16384), 189);
  // Between and outside.
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("A100-80GB", 96, 2048), (140 + 155) / 2.0);
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("H100", 256, 65536), 328);
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("H100", 32, 128), 141);
  EXPECT_DOUBLE_EQ(*FlashAttention2Rate("GB200-186GB", 128, 8192), 332.97);
  EXPECT_FALSE(FlashAttention2Rate("MI300X", 128, 4096).has_value());
}

TEST(FlashAttention2, IsTheMachinesLargestShare) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec before, LoadCluster("--cluster", "dgx-h100"));
  ClusterSpec cluster = before;
  TakeFlashAttention2("H100", 128, 4096, &cluster);
  const auto curve = [](const ClusterSpec& c) {
    return c.device.arithmetic.at(OperationKind::kAttention).value;
  };
  EXPECT_TRUE(CheckCurve(curve(cluster)).ok());
  EXPECT_NEAR(curve(cluster).points.back().share, 294.0 / 989, 1e-9);
  const double size = 1e9, largest = 1e15;
  EXPECT_NEAR(curve(cluster).At(size) / curve(cluster).At(largest),
              curve(before).At(size) / curve(before).At(largest), 1e-9);
  TakeFlashAttention2("MI300X", 128, 4096, &cluster);
  EXPECT_NEAR(curve(cluster).points.back().share, 294.0 / 989, 1e-9);
}

}  // namespace
}  // namespace pipelab
