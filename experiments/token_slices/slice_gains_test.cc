#include "experiments/token_slices/slice_gains.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

class SliceGains : public testing::Test {
 protected:
  std::vector<SliceGain> Of(int row, const std::vector<int>& slices) {
    auto gains = GainsOfSlices(paper_.rows[row], cluster_, slices);
    EXPECT_THAT(gains, IsOk());
    return *std::move(gains);
  }

  const TeraPipePaper paper_ = PublishedTeraPipe().value();
  const ClusterSpec cluster_ = LoadCluster("--cluster", paper_.cluster).value();
};

TEST_F(SliceGains, FewSamplesAndManyStagesGainMost) {
  const std::vector<SliceGain> replicas = Of(0, {8}), large = Of(2, {8});
  ASSERT_EQ(replicas.size(), 2);  // one for each order of ranks
  EXPECT_NE(replicas[0].sliced.config.ranks, replicas[1].sliced.config.ranks);
  EXPECT_LE(replicas[0].sliced.seconds, replicas[1].sliced.seconds);
  ASSERT_EQ(large.size(), 1);                          // D=1: there is nothing to place
  EXPECT_GT(large[0].gain(), 2 * replicas[0].gain());  // two samples through 96 stages
  const std::vector<SliceGain> gains = {replicas[0], replicas[1], large[0]};
  EXPECT_THAT(SliceTable(gains).status(), IsOk());
  const std::vector<NetworkCase> cases = {{10, gains}, {25, gains}};
  EXPECT_THAT(NetworkTable(cases).status(), IsOk());
  for (const Claim& c : SliceClaims(gains, cases)) EXPECT_THAT(CheckClaim(c), IsOk());
}

// Each of the two has the order of ranks that suits it, and a miss names the bandwidths without
// one.
TEST_F(SliceGains, ClaimsNameTheNetworkThatDecides) {
  const auto gain = [&](double whole, double sliced) {
    SliceGain g{paper_.rows[0], {}, {}};
    g.whole.seconds = whole * g.published.without_slices;
    g.sliced.seconds = sliced * g.published.with_slices;
    return g;
  };
  const std::vector<SliceGain> line = {gain(1.3, 0.7), gain(0.7, 0.8)};
  const std::vector<Claim> claims = SliceClaims(
      line, {{10, {gain(1.5, 1.3)}}, {15, {gain(1.2, 1.1)}}, {20, {gain(1, 0.9)}}, {25, line}});
  EXPECT_EQ(claims[0].state, ClaimState::kMet);  // 0.7 / 0.7 of what is published
  EXPECT_EQ(claims[3].state, ClaimState::kDependsOn);
  EXPECT_THAT(claims[3].reason, HasSubstr("holds for 15 Gbit/s, 20 Gbit/s; turns at 15 Gbit/s"));
  EXPECT_EQ(claims[4].state, ClaimState::kDependsOn);
}

// Messages are there: a slower network takes longer, and the paper's formula, which has none, is
// less than what is simulated.
TEST_F(SliceGains, SecondsHaveMessages) {
  const SliceGain gain = Of(1, {4, 8})[0];
  EXPECT_GT(gain.sliced.seconds, gain.sliced.formula_seconds);
  EXPECT_TRUE(gain.sliced.fits);
  auto slower = GainsOfSlices(paper_.rows[1], WithSlowerNetwork(cluster_, 0.5), {4, 8});
  ASSERT_THAT(slower, IsOk());
  EXPECT_GT((*slower)[0].whole.seconds, gain.whole.seconds);
  EXPECT_DOUBLE_EQ((*slower)[0].whole.formula_seconds, gain.whole.formula_seconds);
}

// The fastest of the numbers of slices that are offered is taken.
TEST_F(SliceGains, MoreChoicesAreNoSlower) {
  EXPECT_LE(Of(3, {4, 8, 16})[0].sliced.seconds, Of(3, {4})[0].sliced.seconds);
}

TEST(TeraPipePaper, IsRefusedByPlaceAndReason) {
  const auto message = [](const std::string& row) {
    return std::string(
        ParseTeraPipePaper(R"({"paper": "p", "cluster": "c", "rows": [)" + row + "]}", "f.json")
            .status()
            .message());
  };
  EXPECT_THAT(message(R"({"row": 1, "model": "m", "gpus": 8, "batch": 2, "data": 1, "pipeline": 2,
                          "tensor": 2, "gain": 5, "tag": "read"})"),
              HasSubstr("f.json: rows[0].gpus: must be data x pipeline x tensor"));
  EXPECT_THAT(message(R"({"row": 1, "model": "m", "gpus": 8, "batch": 3, "data": 2, "pipeline": 2,
                          "tensor": 2, "gain": 5, "tag": "read"})"),
              HasSubstr("rows[0].batch: must be a multiple of data"));
}

}  // namespace
}  // namespace pipelab
