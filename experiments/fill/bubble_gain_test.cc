#include "experiments/fill/bubble_gain.h"

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/fill/fill_tables.h"
#include "experiments/fill/real_filling.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class BubbleGainTest : public testing::Test {
 protected:
  const ClusterSpec cluster_ = LoadCluster("--cluster", "p3.16xlarge").value();
};

// The published table's shape: 15 / (m + 15) at each number of GPUs, to the last digit.
TEST_F(BubbleGainTest, BubblesOfEqualStagesAreTheClosedForm) {
  for (const char* scheme : {"gpipe", "1f1b"}) {
    for (const int m : {64, 32, 16, 8}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const MainRun run,
                                   EqualStages(MainModel(), cluster_, scheme, 65536 / m, m));
      EXPECT_NEAR(run.bubble, 15.0 / (m + 15), 1e-12);
      EXPECT_NEAR(run.idle_share(), 15.0 / (m + 15), 1e-12);
      EXPECT_EQ(run.gaps.size(), 16u);
    }
  }
}

// fill flops / main flops, from the bubble, the two rates and how full the gaps are.
TEST_F(BubbleGainTest, GainIsTheBubblesTimesTheRates) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillSet set, FillSetOn(cluster_, NumberType::kFp32));
  ASSERT_GE(set.kinds.size(), 6u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MainRun run,
                               EqualStages(MainModel(), cluster_, "1f1b", 8192, 8));
  const std::vector<FillGain> gains = GainsOf(set, run);
  const double busy = ToSeconds(run.step) * (1 - run.bubble);
  for (size_t k = 0; k < gains.size(); ++k) {
    const FillGain& g = gains[k];
    const double rate = set.kinds[k].rate().value();
    EXPECT_NEAR(g.gain, g.retained * rate * run.bubble * ToSeconds(run.step) / run.flops.value(),
                1e-9);
    EXPECT_NEAR(g.gpus_worth, 8192 * run.bubble * g.retained, 1e-6 * 8192);
    EXPECT_LE(g.time_share, 1);
    EXPECT_LE(g.retained, 1);
    // 3.5 B parameters have no room in 16 GiB beside a training.
    EXPECT_EQ(g.fits(), set.kinds[k].name != "XLM-R XL, inference");
    EXPECT_GT(g.retained, g.fits() ? 0.3 : -1) << set.kinds[k].name;
    EXPECT_LE(*std::max_element(g.speeds.begin(), g.speeds.end()), 1);
    EXPECT_LT(rate, 15.7e12);  // the peak
  }
  EXPECT_LT(run.flops.value() / busy, 125e12);
  double sum = 0, fitting = 0;
  for (const FillGain& g : gains) {
    sum += g.gain;
    fitting += g.fits();
  }
  EXPECT_NEAR(MeanOf(gains).gain, sum / fitting, 1e-12);
}

TEST_F(BubbleGainTest, RefusesHalfAPipeline) {
  EXPECT_THAT(EqualStages(MainModel(), cluster_, "1f1b", 1000, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--devices: 1000")));
}

TEST_F(BubbleGainTest, TablesAndClaimsAreWhole) {
  FillStudyOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "dgx1-v100"));
  options.schemes = {"gpipe", "1f1b", "zb_h1", "chimera"};
  options.requests = 100;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillStudy study, RunFillStudy(options));
  EXPECT_THAT(ScaleTable(study).status(), IsOk());
  EXPECT_THAT(KindTable(study).status(), IsOk());
  EXPECT_THAT(SchemeTable(study).status(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Table policies, PolicyTable(study));
  EXPECT_THAT(policies.status(), IsOk());
  EXPECT_EQ(policies.rows().size(), 3u);
  for (const Claim& c : FillClaims(study)) {
    EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
    EXPECT_TRUE(c.id != "pipefill.bubble" || c.state == ClaimState::kMet);
  }
  // A third of the work is gone from ZB-H1's bubble, and from what it holds.
  ASSERT_EQ(study.schemes[2].missing, "");
  EXPECT_LT(study.schemes[2].run.bubble, study.schemes[1].run.bubble);
  EXPECT_LT(study.schemes[2].mean.gain, study.schemes[1].mean.gain);
}

// Bits are the same; times are those of the machine, and not looked at.
TEST(RealFillingTest, KeepsEveryBit) {
  RealFillingOptions options;
  options.steps = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealFilling real, RunRealFilling(options));
  EXPECT_TRUE(real.same_bits);
  EXPECT_TRUE(real.same_answers);
  EXPECT_GT(real.pictures, 0);
  EXPECT_THAT(RealFillingTable(real).status(), IsOk());
  for (const Claim& c : RealFillingClaims(real)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

// Three hundred pictures take longer than a whole step.
TEST(RealFillingTest, AJobTooLargeForEveryGapIsNamedAndNothingIsLost) {
  RealFillingOptions options;
  options.steps = 8;
  options.of_piece = 300;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RealFilling real, RunRealFilling(options));
  EXPECT_EQ(real.with_ms.size(), 8u);
  EXPECT_TRUE(real.same_bits);
  EXPECT_TRUE(real.same_answers);
  ASSERT_FALSE(real.ended.empty());
  for (const std::string& why : real.ended) {
    EXPECT_THAT(why, HasSubstr("fill job pictures: too large for every gap: a piece takes "));
  }
  EXPECT_THAT(RealFillingTable(real).status(), IsOk());
}

}  // namespace
}  // namespace pipelab
