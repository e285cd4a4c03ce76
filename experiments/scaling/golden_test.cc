// The tables of the GPipe studies against committed ones: what changes in the cost model, the
// specifications or the planners shows here.
//
//   bazel run //experiments/scaling:scaling_test -- --update
#include "experiments/report/golden.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "experiments/published/gpipe.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/largest_models.h"
#include "experiments/scaling/scheme_grid.h"
#include "experiments/scaling/speed_up.h"
#include "experiments/scaling/throughput_grid.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

void ExpectTable(const std::string& family, const Table& table) {
  ASSERT_THAT(table.status(), IsOk());
  ExpectGolden(absl::StrCat("experiments/scaling/testdata/", family, "_", table.id(), ".md"),
               table.ToMarkdown());
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  const GpipeFamily& family() const { return **FindGpipeFamily(GetParam()); }
};

TEST_P(Golden, LargestModels) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GpipePaper paper, PublishedGpipe());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster,
                               LoadCluster("--cluster", family().cluster));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<LargestModel> rows,
                               LargestModels(family(), paper, cluster));
  ExpectTable(GetParam(), LargestModelsTable(family(), cluster, rows));
}

TEST_P(Golden, Throughput) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GpipePaper paper, PublishedGpipe());
  for (const PublishedThroughput& published : paper.throughput) {
    if (published.family != GetParam()) continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster,
                                 LoadCluster("--cluster", published.cluster));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ThroughputGrid grid,
                                 MakeThroughputGrid(family(), published, cluster));
    ExpectTable(GetParam(), ThroughputTable(grid));
    ExpectTable(GetParam(), OverheadTable(grid, paper.overheads));
  }
}

TEST_P(Golden, EverySchedule) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GpipePaper paper, PublishedGpipe());
  for (const PublishedThroughput& published : paper.throughput) {
    if (published.family != GetParam() || published.table != "Table 2") continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster,
                                 LoadCluster("--cluster", published.cluster));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const SchemeGrid grid,
                                 MakeSchemeGrid(family(), published, cluster));
    ExpectTable(GetParam(), SchemeGridTable(grid));
  }
}

TEST_P(Golden, SpeedUp) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster,
                               LoadCluster("--cluster", family().cluster));
  const int64_t layers = family().widens ? 18 : 48, width = family().widens ? 256 : 2048;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SpeedUps s, MakeSpeedUps(family(), layers, width, cluster));
  ExpectTable(GetParam(), SpeedUpTable(s));
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::Values("amoebanet", "transformer"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::GoldenMain(argc, argv); }
