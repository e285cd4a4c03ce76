#include "experiments/travel/travel_table.h"

#include <cstdint>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(TravelTable, HasEveryCell) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<TravelCell> cells,
                               SimulateTravel(TravelPlace::kPcie, /*devices=*/16, cluster));
  ASSERT_EQ(cells.size(), 18);
  EXPECT_THAT(TravelTable(cells).status(), IsOk());
  std::map<int64_t, TravelCell> first_of;  // by width
  for (const TravelCell& c : cells) {
    for (const TravelStep& s : c.steps) EXPECT_GT(s.samples_per_second, 0) << c.ToString();
    // Activations' bytes grow with the tokens, and weights' do not.
    const TravelCell& first = first_of.emplace(c.hidden, c).first->second;
    EXPECT_EQ(c.steps[kWeiPipe].sent, first.steps[kWeiPipe].sent) << c.ToString();
    EXPECT_EQ(c.steps[k1F1B].sent * first.tokens_per_width(),
              first.steps[k1F1B].sent * c.tokens_per_width())
        << c.ToString();
    EXPECT_LT(c.steps[kWeiPipe].sent, c.steps[kWeiPipeNaive].sent);
  }
}

TEST(TravelTable, BestOfWhatFits) {
  TravelCell cell;
  cell.steps[k1F1B] = {3, 0, 0, true};
  cell.steps[kZb1p] = {4, 0, 0, false};
  EXPECT_EQ(cell.Best({k1F1B, kZb1p}), 3);
  EXPECT_EQ(cell.Best({kZb1p}), 0);
}

// PCIe and a shared card are slower for all.
TEST(TravelTable, PlacesDiffer) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const ClusterSpec pcie = PlacedIn(TravelPlace::kPcie, cluster);
  EXPECT_THAT(CheckCluster(pcie), IsOk());
  EXPECT_LT(pcie.levels[0].connection.bandwidth.value.value(),
            cluster.levels[0].connection.bandwidth.value.value());
  EXPECT_EQ(pcie.levels[1].sharing, Sharing::kUnit);
}

}  // namespace
}  // namespace pipelab
