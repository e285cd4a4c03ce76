// Weight versions: what the validator asks of them, and how many live.
#include "pipelines/ir/versions.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/validate.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

std::string VersionsVerdict(const Schedule& s) { return std::string(Validate(s).message()); }

// [device] The most that versions beside the newest ones take at a time, where one of stage s takes
// weights[s].
std::vector<int64_t> PeakStashed(const Schedule& s, const std::vector<int64_t>& weights) {
  std::vector<int64_t> peak;
  for (int d = 0; d < s.num_devices(); ++d) {
    VersionWalk walk(s, d);
    int64_t level = 0;
    peak.push_back(0);
    for (const Action& a : s.order[d]) {
      level += walk.Next(a) * weights[a.stage];
      peak[d] = std::max(peak[d], level);
    }
    EXPECT_EQ(level, 0) << "device " << d;
  }
  return peak;
}

// PipeDream on two devices: the first computes with weights one update older than the newest.
const char kFirst[] = "0F0 0F1 0B0 0S@1 0F2@1 0B1 0S@2 0B2@1 0S@3";
const char kLast[] = "1F0 1B0 1S@1 1F1@1 1B1@1 1S@2 1F2@2 1B2@2 1S@3";

TEST(Versions, LiveFromTheirStepToTheirLastUse) {
  const Schedule s = ChainOf(3, {kFirst, kLast});
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_TRUE(HasOwnSteps(s));
  EXPECT_THAT(LiveVersions(s), ElementsAre(2, 1));
  EXPECT_THAT(VersionUses(s), ElementsAre(ElementsAre(4, 2, 0, 0), ElementsAre(2, 2, 2, 0)));
  EXPECT_THAT(PeakStashed(s, {10, 100}), ElementsAre(10, 0));
}

TEST(Versions, AVersionThatIsUsedLaterLivesWhileNothingIsInFlight) {
  const Schedule s = ChainOf(3, {"0F0 0B0 0S@1 0F1 0B1 0S@2 0F2@1 0B2@1 0S@3"});
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_THAT(LiveVersions(s), ElementsAre(2));
}

TEST(Versions, StagesOfOneDeviceAddUpAtEachTime) {
  // Stage 0 keeps an old version early, stage 1 late: never both.
  Schedule s = ChainOf(3, {"0F0 0F1 1F0 1B0 0B0 1S@1 0S@1 1F1@1 1B1@1 0B1 0S@2 "
                           "0F2@2 1F2@1 1S@2 1B2@1 0B2@2 1S@3 0S@3",
                           ""});
  s.placement.groups[0][1] = {0};
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_THAT(LiveVersions(s), ElementsAre(2, 2));
  EXPECT_THAT(PeakStashed(s, {10, 100}), ElementsAre(100, 0));
  EXPECT_THAT(PeakStashed(s, {100, 10}), ElementsAre(100, 0));
}

TEST(Versions, OneInSynchronousSchedules) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_FALSE(HasOwnSteps(s));
  EXPECT_THAT(LiveVersions(s), ElementsAre(1, 1));
  EXPECT_THAT(VersionUses(s), ElementsAre(ElementsAre(4), ElementsAre(4)));
  EXPECT_THAT(PeakStashed(s, {10, 100}), ElementsAre(0, 0));
}

TEST(Versions, OneForEachMicroBatchAndStage) {
  EXPECT_EQ(VersionsVerdict(ChainOf(2, {"0F0 0F1 0B0 0S@1 0B1@1 0S@2"})),
            "device 0, position 4: 0B1@1 uses another weight version than its forward: 0");
  EXPECT_EQ(VersionsVerdict(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0I1@1 0W1 0S@2"})),
            "device 0, position 5: 0W1 uses another weight version than its forward: 1");
  EXPECT_THAT(Validate(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0I1@1 0W1@1 0S@2"})), IsOk());
  // Stages may differ: PipeDream without vertical sync.
  EXPECT_THAT(Validate(ChainOf(2, {"0F0 0F1 0B0 0B1 0S@1", "1F0 1B0 1S@1 1F1@1 1B1@1 1S@2"})),
              IsOk());
}

TEST(Versions, EveryGradientIsInOneStep) {
  EXPECT_EQ(VersionsVerdict(ChainOf(2, {"0F0 0F1 0B0 0S@1 0B1"})),
            "device 0, position 4: 0B1: no step (S) of stage 0 comes after it, so no weight "
            "version has its gradients");
  EXPECT_EQ(VersionsVerdict(ChainOf(1, {"0F0 0B0 0S@1", "1F0 1B0"})),
            "device 1, position 1: 1B0: no step (S) of stage 1 comes after it, so no weight "
            "version has its gradients");
  EXPECT_EQ(VersionsVerdict(ChainOf(1, {"0F0 0I0 0S@1 0W0"})),
            "device 0, position 2: 0S@1: there are no gradients of stage 0 since its last step");
  EXPECT_EQ(VersionsVerdict(ChainOf(1, {"0F0 0B0 0S@1 0S@2"})),
            "device 0, position 3: 0S@2: there are no gradients of stage 0 since its last step");
}

}  // namespace
}  // namespace pipelab
