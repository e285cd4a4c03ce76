#include "experiments/bidirectional/scheme_throughput.h"

#include <string>
#include <vector>

#include "experiments/all/claim_records.h"
#include "experiments/report/claim.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

TEST(SchemeThroughputTest, FewMicroBatchesAreWhereTwoDirectionsGain) {
  ThroughputOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "dgx-a100"));
  options.models = {"bert-64"};
  options.gpus = {8};
  options.micro_batches = {8, 32};
  options.schemes = {"1f1b", "interleaved", "chimera", "bitpipe"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<SchemePoint> points, SchemeThroughput(options));
  ASSERT_EQ(points.size(), 8u);
  EXPECT_THAT(ThroughputTable(points).status(), IsOk());
  const auto gain = [&](size_t first) {
    return points[first + 3].samples_per_second / points[first].samples_per_second;
  };
  EXPECT_GT(gain(0), gain(4));  // over 1F1B
  EXPECT_GT(gain(4), 0.9);
  EXPECT_LT(points[3].bubble, points[0].bubble);
  for (const Claim& c : BitPipeClaims(points, {})) EXPECT_THAT(CheckClaim(c), IsOk());
}

// A threshold, a value of the cluster and a price: the comparison with committed claims names each.
TEST(SchemeThroughputTest, ClaimsThatChangeAreNoticed) {
  ThroughputOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "dgx-a100"));
  options.models = {"bert-64"};
  options.gpus = {8};
  options.micro_batches = {8};
  options.schemes = {"1f1b", "bitpipe"};
  const auto claims = [](const ThroughputOptions& o) {
    return BitPipeClaims(SchemeThroughput(o).value(), {});
  };
  const std::vector<Claim> before = claims(options);
  const std::vector<ClaimRecord> committed = RecordsOf("study", before);
  const auto differences = [&](const std::vector<Claim>& now) {
    return ClaimDifferences(committed, RecordsOf("study", now));
  };
  EXPECT_THAT(differences(claims(options)), testing::IsEmpty());

  std::vector<Claim> threshold = before;
  MetWithin(&threshold[0], 0, 100, "slower");
  ASSERT_EQ(before[0].state, ClaimState::kMissed);
  EXPECT_THAT(differences(threshold),
              testing::ElementsAre(testing::HasSubstr(
                  "claim bitpipe.headline: missed -> met; accepted 1.05x to 1.28x -> 0x to 100x")));

  ThroughputOptions slower = options;
  BytesPerSecond& bandwidth = slower.cluster.levels.front().connection.bandwidth.value;
  bandwidth = BytesPerSecond(bandwidth.value() / 100);
  EXPECT_THAT(differences(claims(slower)),
              testing::Contains(testing::HasSubstr("claim bitpipe.over_each: value ")));

  ThroughputOptions dearer = options;
  Nanoseconds& launch = dearer.cluster.device.launch_overhead.value;
  launch = launch * 100;
  EXPECT_THAT(differences(claims(dearer)),
              testing::Contains(testing::HasSubstr("claim bitpipe.headline: value ")));
}

TEST(SchemeThroughputTest, ClaimsAreOfWhatFits) {
  const auto point = [](const char* scheme, int micro_batches, double throughput) {
    SchemePoint p;
    p.model = "m";
    p.scheme = scheme;
    p.gpus = 8;
    p.micro_batches = micro_batches;
    p.samples_per_second = throughput;
    p.missing = "too large";
    p.authors = true;
    return p;
  };
  std::vector<Claim> claims =
      BitPipeClaims({point("1f1b", 8, 10), point("chimera", 8, 11), point("bitpipe", 8, 12),
                     point("1f1b", 16, 20), point("chimera", 16, 0), point("bitpipe", 16, 19)},
                    {});
  EXPECT_NEAR(*claims[0].value, 12.0 / 11, 1e-12);
  EXPECT_EQ(claims[0].state, ClaimState::kMet);
  EXPECT_NEAR(*claims[1].value, 0.95, 1e-12);
  EXPECT_EQ(claims[1].state, ClaimState::kMissed);
  claims = BitPipeClaims({point("1f1b", 8, 10), point("bitpipe", 8, 0)}, {});
  EXPECT_EQ(claims[0].state, ClaimState::kNotMade);
  EXPECT_THAT(CheckClaim(claims[1]), IsOk());
}

// A claim is of the authors' sizes, on every machine that theirs may have been.
TEST(SchemeThroughputTest, OtherSizesAreInTheTableAlone) {
  ThroughputOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "dgx-a100"));
  options.models = {"gpt-96"};
  options.gpus = {16};
  options.micro_batches = {32};
  options.schemes = {"interleaved", "bitpipe"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<SchemePoint> points, SchemeThroughput(options));
  ASSERT_EQ(points.size(), 4u);
  EXPECT_TRUE(points[0].authors);
  EXPECT_EQ(points[0].micro_batches, 16);
  EXPECT_FALSE(points[2].authors);
  EXPECT_EQ(points[1].ranks, RankOrder::kTensorDataMirrored);  // sums stay in a node
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MachineCase> cases, OtherMachines(options));
  ASSERT_EQ(cases.size(), 5u);
  for (const MachineCase& other : cases) EXPECT_EQ(other.points.size(), 4u);
  EXPECT_GT(cases[4].points[0].samples_per_second, 0);
}

}  // namespace
}  // namespace pipelab
