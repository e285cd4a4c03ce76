#include "experiments/commands/machine_charts.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// No operation is faster than its roof, and every machine has charts that a terminal shows.
TEST(MachineCharts, StayBelowTheRoofOnEveryMachine) {
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MachineChart> charts, ChartsOf(cluster));
    ASSERT_GE(charts.size(), 3u) << name;
    for (const MachineChart& chart : charts) {
      for (const MachineLine& line : chart.lines) {
        ASSERT_EQ(line.at.size(), chart.sizes.size()) << name << ": " << chart.title;
        for (size_t i = 0; i < line.roofs.size(); ++i) {
          EXPECT_LE(line.at[i], line.roofs[i]) << name << ": " << chart.title << ", " << line.name;
        }
        for (size_t i = 1; i < line.at.size(); ++i) {
          EXPECT_GE(line.at[i], 0.999 * line.at[i - 1]) << name << ": " << chart.title;
        }
      }
      for (const absl::string_view row : absl::StrSplit(ChartText(chart), '\n')) {
        EXPECT_LE(row.size(), 120u) << row;
      }
    }
  }
}

// The bus bandwidth of a large all-reduce nears what the ring's all-reduces are said to have.
TEST(MachineCharts, AllReducesNearTheirRing) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-h100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MachineChart> charts, ChartsOf(cluster));
  const MachineLine& node = charts.back().lines.front();
  EXPECT_EQ(node.name, "8 devices of a node");
  const double most = cluster.levels[0].rings.back().all_reduce->value.value() / 1e9;
  EXPECT_LT(node.at.back(), most);
  EXPECT_GT(node.at.back(), 0.95 * most);
  EXPECT_EQ(charts.back().lines[1].name, "16 devices of two nodes");
}

TEST(MachineCharts, DrawsAllBelowOneAnother) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-b200"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MachineChart> charts, ChartsOf(cluster));
  const std::string svg = ChartsSvg(cluster.name, charts);
  EXPECT_THAT(svg, HasSubstr("dgx-b200: products of n x n by n x n"));
  EXPECT_THAT(svg, HasSubstr("roof: peak 4500 Tflop/s, memory 8 TB/s"));
  EXPECT_THAT(svg, HasSubstr("chart2-title"));
  EXPECT_THAT(svg,
              HasSubstr("<text x=\"70\" y=\"363\" class=\"pl-m\" text-anchor=\"middle\">256<"));
  EXPECT_EQ(ChartsJson(charts)[0]["lines"][1]["name"], "fp8");
}

}  // namespace
}  // namespace pipelab
