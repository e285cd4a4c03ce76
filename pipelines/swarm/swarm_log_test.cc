#include "pipelines/swarm/swarm_log.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr char kLog[] =
    "start step=0 stages=2 micro_batches=2 epoch=1\n"
    "join peer=0 stage=0 address=a:1 epoch=1\n"
    "join peer=1 stage=0 address=b:1 epoch=1\n"
    "join peer=2 stage=1 address=c:1 epoch=1\n"
    "join peer=3 stage=0 address=d:1 epoch=1\n"
    "count step=0 stage=1 micro_batch=0 peer=2 epoch=1\n"
    "count step=0 stage=1 micro_batch=1 peer=2 epoch=1\n"
    "count step=0 stage=0 micro_batch=0 peer=0 epoch=1\n"
    "drop peer=0 stage=0 address=a:1 why=\"gone\" epoch=1\n"
    "lose step=0 stage=0 micro_batch=0 peer=0 epoch=1\n"
    "count step=0 stage=0 micro_batch=0 peer=1 epoch=1\n"
    "count step=0 stage=0 micro_batch=1 peer=3 epoch=1\n"
    "commit step=0 stage=0 shares=1:0;3:1 epoch=1\n"
    "commit step=0 stage=1 shares=2:0,1 epoch=1\n"
    "step step=0 loss=0x1p+1 ms=3 epoch=1\n";

std::string OfEpoch(int epoch) {
  return absl::StrReplaceAll(kLog, {{"epoch=1", absl::StrCat("epoch=", epoch)}});
}

// Lines with their ends.
std::vector<std::string> LinesOf(const std::string& log) {
  std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  for (std::string& line : lines) line += "\n";
  return lines;
}

TEST(SwarmLogTest, ProvesEachGradientOnce) {
  const auto proof = CheckSwarmLog(kLog);
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 1);
  EXPECT_EQ(proof->gradients, 4);
  EXPECT_EQ(proof->lost, 1);
  EXPECT_EQ(proof->drops, 1);
}

TEST(SwarmLogTest, AKilledCoordinatorsStepsAreDoneAgain) {
  const std::string log = std::string(kLog) + "count step=1 stage=0 micro_batch=0 pe";
  EXPECT_THAT(CheckSwarmLog(log), IsOk());
  const auto proof = CheckSwarmLog(kLog + OfEpoch(2));
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 1);
  EXPECT_EQ(proof->redone, 1);
  EXPECT_EQ(proof->late, 0);
}

void ExpectFound(const std::string& log, const std::string& what) {
  EXPECT_THAT(CheckSwarmLog(log), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line ")))
      << what;
}

TEST(SwarmLogTest, EachTamperingIsFound) {
  const std::pair<const char*, const char*> kTampered[] = {
      {"shares=2:0,1", "shares=2:0"},        // one left out
      {"shares=2:0,1", "shares=2:0,0,1"},    // one twice
      {"shares=2:0,1", "shares=2:0;4:1"},    // of a peer that had none
      {"shares=1:0;3:1", "shares=0:0;3:1"},  // of the peer that was lost
      {"commit step=0 stage=1", "commit step=0 stage=0"},
      {"step step=0", "step step=1"},
      {"count step=0 stage=1 micro_batch=1", "count step=0 stage=1 micro_batch=7"},
      {"micro_batch=1 peer=2", "micro_batch=x peer=2"},
      {"micro_batch=1 peer=2", "micro_batch=1 peer=9"},
      {"join peer", "jion peer"},
      {"start step=0", "start step=-1"},
      {"ms=3 epoch=1", "ms=3 epoch=2"},  // of a coordinator that did not start
      {"ms=3 epoch=1", "ms=3"},
      // Summed for a peer that is gone, of which nothing was lost.
      {"count step=0 stage=0 micro_batch=1",
       "drop peer=1 epoch=1\ncount step=0 stage=0 micro_batch=1"},
  };
  for (const auto& [from, to] : kTampered) {
    const std::string log = absl::StrReplaceAll(kLog, {{from, to}});
    ASSERT_NE(log, kLog) << from;
    ExpectFound(log, absl::StrCat(from, " -> ", to));
  }
}

TEST(SwarmLogTest, NoLineIsMissingTwiceCutOrElsewhere) {
  const std::vector<std::string> lines = LinesOf(kLog);
  const auto kind = [&](size_t i) { return lines[i].substr(0, lines[i].find(' ')); };
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto with = [&](const std::string& line) {
      std::vector<std::string> changed = lines;
      changed[i] = line;
      return absl::StrCat(absl::StrJoin(changed, ""), "save step=1 epoch=1\n");
    };
    const std::string half = lines[i].substr(0, lines[i].size() / 2);
    ExpectFound(with(""), absl::StrCat("missing: ", lines[i]));
    ExpectFound(with(lines[i] + lines[i]), absl::StrCat("twice: ", lines[i]));
    ExpectFound(with(half + "\n"), absl::StrCat("cut: ", half));
    ExpectFound(with(half), absl::StrCat("without its end: ", half));
    // Neighbours that say nothing of each other may be in any order.
    if (i + 1 == lines.size() || kind(i) == kind(i + 1)) continue;
    const std::string kinds = kind(i) + " " + kind(i + 1);
    if (kinds == "join count" || kinds == "count drop") continue;
    std::vector<std::string> swapped = lines;
    std::swap(swapped[i], swapped[i + 1]);
    ExpectFound(absl::StrJoin(swapped, ""), absl::StrCat("too late: ", lines[i]));
  }
}

TEST(SwarmLogTest, OfTwoCoordinatorsTheLaterOneCounts) {
  const std::string later = OfEpoch(2);
  const std::vector<std::string> old = LinesOf(kLog), own = LinesOf(later);
  // The earlier one comes back at any place of the later one's log, and does what it still had to.
  for (size_t at = 1; at < own.size(); ++at) {
    std::string log;
    for (size_t i = 0; i < own.size(); ++i) log += own[i] + (i + 1 >= at ? old[i] : "");
    log += "start step=0 stages=2 micro_batches=2 epoch=1\n";
    const auto proof = CheckSwarmLog(log);
    ASSERT_THAT(proof, IsOk()) << at;
    EXPECT_EQ(proof->steps, 1);
    EXPECT_EQ(proof->drops, 1);
    EXPECT_EQ(proof->late, own.size() - at + 2);
  }
  const std::string saved = "save step=1 epoch=1\n";
  EXPECT_THAT(CheckSwarmLog(kLog + saved), IsOk());
  ExpectFound(kLog + later + saved, "saves late");
  ExpectFound(kLog + saved + later, "starts before what was saved");
  ExpectFound(std::string("start step=0 stages=1 micro_batches=1 epoch=1\n") + saved, "saves more");
  ExpectFound(absl::StrCat(kLog, kLog), "the same start twice");
}

// A reason is what others have written: it takes no line's place.
TEST(SwarmLogTest, ReasonsForgeNothing) {
  const std::string log = absl::StrReplaceAll(
      kLog, {{"why=\"gone\"", "why=\"x peer=1 epoch=9 torn step=7 'start step=0\\n\""}});
  const auto proof = CheckSwarmLog(log);
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 1);
}

TEST(SwarmLog, AFileHasEveryLineOrAnError) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/swarm.log");
  for (int life = 0; life < 2; ++life) {
    const auto file = SwarmLogFile::Open(path);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(SwarmLogFile::Open(path),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrCat("--log=", path, ": process "))));
    const std::string epoch = absl::StrCat(" epoch=", life, "\n");
    (*file)->Add(absl::StrCat("start step=0 stages=1 micro_batches=1", epoch));
    (*file)->Add(absl::StrCat("refuse why=\"trainer 7: other data\"", epoch));
    EXPECT_THAT((*file)->status(), IsOk());
    // Killed in the middle of a line, which the next life does not go on with.
    std::ofstream(path, std::ios::app) << "count step=0 stage=0 micro_batch=1";
  }
  const auto text = ReadFile(path);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 5);
  EXPECT_THAT(*text, HasSubstr("epoch=1 t="));
  EXPECT_THAT(CheckSwarmLog(*text), IsOk());

  const auto full = SwarmLogFile::Open("/dev/full");
  ASSERT_THAT(full, IsOk());
  (*full)->Add("start\n");
  EXPECT_THAT((*full)->status(),
              StatusIs(absl::StatusCode::kUnknown,
                       "--log=/dev/full: could not be written: No space left on device, so it "
                       "proves nothing"));
  EXPECT_THAT(SwarmLogFile::Open("/proc/none/log"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--log=/proc/none/log: ")));
}

}  // namespace
}  // namespace pipelab
