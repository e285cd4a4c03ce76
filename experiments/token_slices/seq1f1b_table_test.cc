#include "experiments/token_slices/seq1f1b_table.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(Seq1F1BTable, LaterSlicesAreShorter) {
  const std::vector<int64_t> slices = EqualWorkSlices(65536, 4, 4096);
  ASSERT_EQ(slices.size(), 4);
  EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), int64_t{0}), 65536);
  for (size_t i = 1; i < slices.size(); ++i) EXPECT_LT(slices[i], slices[i - 1]);
  // Narrow blocks are nearly all attention, whose work grows with the square.
  EXPECT_EQ(EqualWorkSlices(65536, 4, 1)[0], 32768);
}

TEST(Seq1F1BTable, SlicesHoldLess) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Seq1F1BPaper paper, PublishedSeq1F1B());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Seq1F1BRow row, SimulateRow(paper.rows[0], cluster));
  EXPECT_LT(row.steps[2].memory, row.steps[0].memory);
  EXPECT_GT(row.steps[2].tflops, row.steps[0].tflops);
  EXPECT_THAT(Seq1F1BTable({row}).status(), IsOk());
  for (const Claim& c : Seq1F1BClaims({row})) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

}  // namespace
}  // namespace pipelab
