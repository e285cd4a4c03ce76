#include "experiments/bidirectional/scheme_throughput.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

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
  for (const Claim& c : BitPipeClaims(points)) EXPECT_THAT(CheckClaim(c), IsOk());
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
    return p;
  };
  std::vector<Claim> claims =
      BitPipeClaims({point("1f1b", 8, 10), point("chimera", 8, 11), point("bitpipe", 8, 12),
                     point("1f1b", 16, 20), point("chimera", 16, 0), point("bitpipe", 16, 19)});
  EXPECT_NEAR(*claims[0].value, 12.0 / 11, 1e-12);
  EXPECT_EQ(claims[0].state, ClaimState::kMet);
  EXPECT_NEAR(*claims[1].value, 0.95, 1e-12);
  EXPECT_EQ(claims[1].state, ClaimState::kMissed);
  claims = BitPipeClaims({point("1f1b", 8, 10), point("bitpipe", 8, 0)});
  EXPECT_EQ(claims[0].state, ClaimState::kNotMade);
  EXPECT_THAT(CheckClaim(claims[1]), IsOk());
}

}  // namespace
}  // namespace pipelab
