// What the GPipe studies claim, and that nothing but specifications goes into it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/published/gpipe.h"
#include "experiments/scaling/gpipe_claims.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/largest_models.h"
#include "experiments/scaling/overheads.h"
#include "experiments/scaling/throughput_grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

ClusterSpec Cluster(const std::string& name) { return LoadCluster("--cluster", name).value(); }

std::vector<LargestModel> AllLargestModels() {
  const GpipePaper paper = PublishedGpipe().value();
  std::vector<LargestModel> all;
  for (const char* id : {"amoebanet", "transformer"}) {
    const GpipeFamily* family = FindGpipeFamily(id).value();
    const auto rows = LargestModels(*family, paper, Cluster(family->cluster)).value();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

TEST(LargestModels, HaveThePublishedParametersAndMemory) {
  const std::vector<LargestModel> rows = AllLargestModels();
  ASSERT_EQ(rows.size(), 10);
  int parameters_near = 0, activations_near = 0;
  for (const LargestModel& row : rows) {
    const PublishedLargestModel& p = row.published;
    SCOPED_TRACE(p.family + ", " + p.column);
    const double unit = FindGpipeFamily(p.family).value()->bytes_of_unit;
    EXPECT_NEAR(static_cast<double>(row.parameters) / p.counted, 1, 0.005);
    const auto near = [unit](Bytes predicted, double published, double tolerance) {
      return std::abs(static_cast<double>(predicted.value()) / unit / published - 1) <= tolerance;
    };
    parameters_near += near(row.parameter_memory, p.parameter_memory, 0.03) ? 1 : 0;
    activations_near += near(row.activations, p.activation_memory, 0.15) ? 1 : 0;
    EXPECT_TRUE(row.fits);
    EXPECT_GE(row.found_parameters, row.parameters);  // the search begins at what fits
    EXPECT_GE(row.activations_without_recompute, row.activations);
  }
  // AmoebaNet's Naive-1 and Pipeline-8 disagree with the paper's own parameter counts.
  EXPECT_EQ(parameters_near, 8);
  EXPECT_EQ(activations_near, 10);
}

const std::vector<ThroughputGrid>& AllGrids() {
  static const auto* const all = [] {
    auto* grids = new std::vector<ThroughputGrid>;
    const GpipePaper paper = PublishedGpipe().value();
    for (const PublishedThroughput& published : paper.throughput) {
      const GpipeFamily* family = FindGpipeFamily(published.family).value();
      grids->push_back(MakeThroughputGrid(*family, published, Cluster(published.cluster)).value());
    }
    return grids;
  }();
  return *all;
}

TEST(Throughput, IsNearThePublishedOneAndMissesHaveReasons) {
  std::vector<double> errors;
  int pairs = 0, alike = 0;
  for (const ThroughputGrid& grid : AllGrids()) {
    EXPECT_EQ(grid.cells[0].own, 1);
    for (const ThroughputCell& cell : grid.cells) {
      errors.push_back(std::abs(cell.error()));
      EXPECT_EQ(ReasonOfMiss(grid, cell).empty(), std::abs(cell.error()) <= 0.25);
      if (cell.micro_batches > 1) {  // one micro-batch is not a pipeline: no stage is the longest
        EXPECT_GE(cell.optimal_point.point.samples_per_second(),
                  cell.own_point.point.samples_per_second() * 0.99);
      }
      const Overheads& o = cell.overheads;
      EXPECT_NEAR(o.compute + o.recompute + o.update + o.bubble + o.imbalance + o.set_up, 1, 1e-9);
    }
    const Orderings orderings = CompareOrderings(grid);
    pairs += orderings.pairs;
    alike += orderings.alike;
    EXPECT_EQ(orderings.pairs - orderings.alike, static_cast<int>(orderings.others.size()));
  }
  ASSERT_EQ(errors.size(), 24);
  std::sort(errors.begin(), errors.end());
  EXPECT_LE((errors[11] + errors[12]) / 2, 0.11);  // 0.06 with no set-up, 0.35 the largest
  EXPECT_LE(errors.back(), 0.36);
  EXPECT_EQ(pairs, 78);
  EXPECT_GE(alike, 71);
}

// A set-up moves all cells, and the claim says where it decides; the unit that does not fit is
// named.
TEST(Throughput, SaysWhatIsUnknown) {
  for (const ThroughputGrid& grid : AllGrids()) {
    SCOPED_TRACE(grid.family->id + ", " + grid.published.table);
    double worst = 0;
    for (const ThroughputCell& cell : grid.cells) worst = std::max(worst, std::abs(cell.error()));
    const Nanoseconds set_up = grid.cells[0].own_point.point.step.set_up;
    EXPECT_NEAR(WorstError(grid, set_up), worst, 1e-9);
    const std::string text = WhatIsUnknown(grid);
    const bool tpus = grid.published.table == "Table 2", transformer = !grid.family->widens;
    EXPECT_EQ(set_up > Nanoseconds(0), tpus);
    EXPECT_EQ(text.empty(), !tpus) << text;
    if (!tpus) continue;
    EXPECT_EQ(text.find("needs 17.4 of 16 GiB") != std::string::npos, transformer) << text;
    const Claim claim = ThroughputClaim(grid);
    EXPECT_EQ(claim.state, transformer ? ClaimState::kDependsOn : ClaimState::kMissed);
    EXPECT_THAT(claim.reason, HasSubstr(text));
    EXPECT_EQ(claim.reason.find("a step's set-up: holds for ") == 0, transformer) << claim.reason;
  }
}

// Every rate doubled and every latency halved. Sizes of operations at which curves have their
// points stay: halves of the time at twice the rate.
ClusterSpec TwiceAsFast(ClusterSpec cluster) {
  DeviceSpec& d = cluster.device;
  for (auto& [type, peak] : d.peaks) peak.value = FlopsPerSecond(2 * peak.value.value());
  d.memory_bandwidth.value = BytesPerSecond(2 * d.memory_bandwidth.value.value());
  d.launch_overhead.value = Nanoseconds(d.launch_overhead.value.value() / 2);
  for (auto* overhead : {&d.host_launch, &d.collective_overhead, &d.step_set_up}) {
    if (overhead->has_value()) {
      (*overhead)->value = Nanoseconds((*overhead)->value.value() / 2);
    }
  }
  const auto faster = [](Connection* c) {
    c->latency.value = Nanoseconds(c->latency.value.value() / 2);
    c->bandwidth.value = BytesPerSecond(2 * c->bandwidth.value.value());
  };
  for (ClusterLevel& level : cluster.levels) {
    faster(&level.connection);
    if (level.through.has_value()) faster(&level.through->connection);
  }
  return cluster;
}

// No time comes from anywhere but the specification: where that is twice as fast, so is all.
TEST(Throughput, ComesFromTheSpecificationAlone) {
  const GpipePaper paper = PublishedGpipe().value();
  ASSERT_EQ(AllGrids().size(), paper.throughput.size());
  for (const ThroughputGrid& once : AllGrids()) {
    const PublishedThroughput& published = once.published;
    SCOPED_TRACE(published.family + ", " + published.table);
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const ThroughputGrid twice,
        MakeThroughputGrid(*once.family, published, TwiceAsFast(Cluster(published.cluster))));
    for (size_t i = 0; i < once.cells.size(); ++i) {
      EXPECT_NEAR(twice.cells[i].own_point.point.samples_per_second() /
                      once.cells[i].own_point.point.samples_per_second(),
                  2, 0.002);
      EXPECT_EQ(twice.cells[i].layout, once.cells[i].layout);
      EXPECT_EQ(twice.cells[i].own_point.point.largest_device,
                once.cells[i].own_point.point.largest_device);
    }
  }
}

TEST(GpipePaper, IsRefusedByPlaceAndReason) {
  const auto message = [](const std::string& text) {
    return std::string(ParseGpipePaper(text, "a.json").status().message());
  };
  EXPECT_THAT(message(R"({"paper": "p", "colour": 1})"), HasSubstr("a.json: colour: unknown"));
  EXPECT_THAT(message(R"({"paper": "p", "largest_models": [{"family": "a"}]})"),
              HasSubstr("a.json: largest_models[0].column: missing"));
  EXPECT_THAT(
      message(R"({"paper": "p", "largest_models": [], "overheads": {}, "throughput": [{"family":
              "a", "table": "t", "cluster": "c", "layers": 1, "width": 1, "tag": "read",
              "devices": [2, 4], "rows": [{"micro_batches": 1, "normalised": [1]}]}]})"),
      HasSubstr("throughput[0].rows[0].normalised: must have a number for each of the 2 devices"));
  EXPECT_THAT(std::string(FindGpipeFamily("x").status().message()),
              HasSubstr("must be amoebanet or transformer"));
}

}  // namespace
}  // namespace pipelab
