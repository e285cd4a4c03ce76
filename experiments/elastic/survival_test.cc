// The swarm as processes, killed with SIGKILL.
#include "experiments/elastic/survival.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

SurvivalOptions Small(const std::string& name) {
  SurvivalOptions options;
  options.pipelab = "experiments/pipelab";
  options.folder = absl::StrCat(::testing::TempDir(), "/", name);
  EXPECT_THAT(MakeDirectories(options.folder), IsOk());
  options.peers = 6;
  options.steps = 30;
  options.micro_batches = 6;
  options.job = {"--context=16", "--hidden=16", "--checkpoint_every=4"};
  options.least_pass_ms = {4};
  options.limit = absl::Seconds(100);
  return options;
}

const SurvivalRun& Undisturbed() {
  static const SurvivalRun* const run = [] {
    const absl::StatusOr<SurvivalRun> made = RunSwarm(Small("undisturbed"));
    EXPECT_THAT(made, IsOk());
    return new SurvivalRun(made.ok() ? *made : SurvivalRun());
  }();
  return *run;
}

void ExpectSurvives(const SurvivalOptions& options) {
  const absl::StatusOr<SurvivalRun> run = RunSwarm(options);
  ASSERT_THAT(run, IsOk());
  EXPECT_GT(run->kills, 0);
  EXPECT_EQ(run->losses, Undisturbed().losses);
  EXPECT_EQ(run->left, 0);
  EXPECT_EQ(run->proof.steps, options.steps);
  if (!options.kill_coordinator) {
    EXPECT_GT(run->proof.drops, 0);
  }
}

TEST(SurvivalTest, PeersMayBeKilled) {
  ASSERT_EQ(Undisturbed().losses.size(), 30);
  SurvivalOptions options = Small("killed");
  options.least_pause = absl::Milliseconds(400);
  options.most_pause = absl::Milliseconds(900);
  ExpectSurvives(options);
}

TEST(SurvivalTest, ThirtyPercentMayBeKilledAtOnce) {
  SurvivalOptions options = Small("at_once");
  options.at_once = 2;
  options.least_pause = options.most_pause = absl::Seconds(1);
  ExpectSurvives(options);
}

TEST(SurvivalTest, PeersMayHang) {
  SurvivalOptions options = Small("stall");
  options.stall = true;
  options.wait_limit_s = 1;
  options.least_pause = options.most_pause = absl::Seconds(2);
  ExpectSurvives(options);
}

TEST(SurvivalTest, DelayedUpdatesHaveTheSameBits) {
  SurvivalOptions options = Small("delayed");
  options.job.push_back("--update_delay=1");
  const absl::StatusOr<SurvivalRun> undisturbed = RunSwarm(options);
  ASSERT_THAT(undisturbed, IsOk());
  EXPECT_NE(undisturbed->losses, Undisturbed().losses);
  options = Small("delayed_killed");
  options.job.push_back("--update_delay=1");
  options.least_pause = absl::Milliseconds(400);
  options.most_pause = absl::Milliseconds(900);
  const absl::StatusOr<SurvivalRun> run = RunSwarm(options);
  ASSERT_THAT(run, IsOk());
  EXPECT_GT(run->proof.drops, 0);
  EXPECT_EQ(run->losses, undisturbed->losses);
}

TEST(SurvivalTest, TheCoordinatorMayBeKilled) {
  SurvivalOptions options = Small("coordinator");
  options.kill_coordinator = true;
  options.least_pause = options.most_pause = absl::Milliseconds(1200);
  ExpectSurvives(options);
}

}  // namespace
}  // namespace pipelab
