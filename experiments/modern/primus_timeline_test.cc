#include "experiments/modern/primus_timeline.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Step 2 of two micro-batches.
std::string RankText(const std::string& fwd, const std::string& fwd_end, const std::string& bwd,
                     const std::string& bwd_end, double total) {
  return absl::StrCat(R"({"2": {"total": )", total, R"(, "memory": 1, "fwd_start": )", fwd,
                      R"(, "fwd_end": )", fwd_end, R"(, "bwd_start": )", bwd, R"(, "bwd_end": )",
                      bwd_end, "}}");
}

// Two ranks under 1F1B: forwards of 10 and 20 ms, backwards of 30 and 40. After each pass of the
// second rank is 1 ms in which nothing was recorded.
TEST(PrimusTimeline, PassesTakeTheirOwnTimes) {
  PrimusRun run;
  run.micro_batches = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      PrimusRank first,
      ParsePrimusRank(RankText("[0, 10]", "[10, 20]", "[71, 133]", "[101, 163]", 163), "0.json", 2,
                      2));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      PrimusRank second,
      ParsePrimusRank(RankText("[10, 72]", "[30, 92]", "[31, 93]", "[71, 133]", 134), "1.json", 2,
                      2));
  run.ranks = {first, second};
  EXPECT_EQ(run.Milliseconds(0), 163);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PrimusTimeline timeline, ReplayPrimus(run));
  ASSERT_EQ(timeline.size(), 2u);
  for (const PrimusReplay& r : timeline) {
    EXPECT_NEAR(r.simulated, 160, 1e-6) << r.times;
    EXPECT_NEAR(r.start_error, (0 + 0 + 1 + 3 + 0 + 1 + 2 + 3) / 8.0, 1e-6) << r.times;
  }
  EXPECT_THAT(PrimusTimelineTable(timeline).status(), IsOk());
  const Claim claim = PrimusTimelineClaim(timeline);
  EXPECT_THAT(CheckClaim(claim), IsOk());
  EXPECT_EQ(claim.state, ClaimState::kMet);  // 1.8 %
  run.ranks[0][0].total = 170;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PrimusTimeline longer, ReplayPrimus(run));
  EXPECT_EQ(PrimusTimelineClaim(longer).state, ClaimState::kMissed);
  EXPECT_EQ(PrimusTimelineClaim({}).state, ClaimState::kNotMade);
}

TEST(PrimusTimeline, ErrorsNameTheStepAndTheList) {
  const auto message = [](const std::string& text, int64_t steps = 2) {
    return std::string(ParsePrimusRank(text, "0.json", steps, 2).status().message());
  };
  EXPECT_THAT(message(RankText("[0]", "[1, 2]", "[2, 3]", "[3, 4]", 4)),
              "0.json: 2.fwd_start: must have 2 times, one a micro-batch, not 1");
  EXPECT_THAT(message(RankText("[0, 1]", "[1, \"x\"]", "[2, 3]", "[3, 4]", 4)),
              "0.json: 2.fwd_end: must have times in ms, not \"x\"");
  EXPECT_THAT(message(RankText("[0, 1]", "[1, 2]", "[2, 3]", "[3, 2]", 4)),
              "0.json: 2.bwd_end: pass 1 must not end before it begins");
  EXPECT_THAT(message(RankText("[0, 1]", "[1, 2]", "[2, 3]", "[3, 4]", 0)),
              "0.json: 2.total: must be above 0");
  EXPECT_THAT(message(RankText("[0, 1]", "[1, 2]", "[2, 3]", "[3, 4]", 4), 3),
              testing::HasSubstr("0.json: 3: "));
  EXPECT_THAT(message("{\"2\": {"), testing::HasSubstr("not JSON"));
}

TEST(PrimusTimeline, TheMeasuredRun) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  const std::string path = JoinPath(folder, "primus_pp8");
  if (!PathExists(path)) GTEST_SKIP() << path << " is not there";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PrimusRun run, ReadPrimusRun(path));
  EXPECT_EQ(run.ranks.size(), 8u);
  EXPECT_EQ(run.steps(), 19);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PrimusTimeline timeline, ReplayPrimus(run));
  EXPECT_EQ(PrimusTimelineClaim(timeline).state, ClaimState::kMet);
}

}  // namespace
}  // namespace pipelab
