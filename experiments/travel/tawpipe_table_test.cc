#include "experiments/travel/tawpipe_table.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// One row, with large micro-batches.
TEST(TawPipeTable, HasMethodsAndClaims) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::vector<TawPipeRow> rows,
      SimulateTawPipe(cluster, /*least_samples=*/16, /*most_tokens=*/4096));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].hidden, 1024);
  for (const TawPipeStep& s : rows[0].methods) {
    EXPECT_GT(s.tokens_per_second, 0);
    EXPECT_GE(s.samples, 16);
    EXPECT_GT(s.memory, 0);
    EXPECT_LT(s.memory, 80 * 1.0737);
  }
  EXPECT_THAT(TawPipeTable(rows).status(), IsOk());
  for (const Claim& c : TawPipeClaims(rows)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

TEST(TawPipeTable, NodesShareACard) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const ClusterSpec ethernet = WithEthernet(cluster);
  EXPECT_THAT(CheckCluster(ethernet), IsOk());
  EXPECT_EQ(ethernet.levels[1].sharing, Sharing::kUnit);
  EXPECT_EQ(ethernet.levels[1].connection.bandwidth.value, BytesPerSecond(1.25e9));
  EXPECT_EQ(ethernet.levels[0].connection.bandwidth.value,
            cluster.levels[0].connection.bandwidth.value);
}

}  // namespace
}  // namespace pipelab
