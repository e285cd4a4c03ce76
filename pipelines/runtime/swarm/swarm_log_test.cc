#include "pipelines/runtime/swarm/swarm_log.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr char kLog[] =
    "start step=0 stages=2 micro_batches=2 epoch=1\n"
    "join peer=0 stage=0 address=a:1\n"
    "count step=0 stage=1 micro_batch=0 peer=2\n"
    "count step=0 stage=1 micro_batch=1 peer=2\n"
    "count step=0 stage=0 micro_batch=0 peer=0\n"
    "drop peer=0 stage=0 address=a:1 why=\"gone\"\n"
    "lose step=0 stage=0 micro_batch=0 peer=0\n"
    "count step=0 stage=0 micro_batch=0 peer=1\n"
    "count step=0 stage=0 micro_batch=1 peer=3\n"
    "commit step=0 stage=0 shares=1:0;3:1\n"
    "commit step=0 stage=1 shares=2:0,1\n"
    "step step=0 loss=0x1p+1 ms=3\n";

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
  const auto proof = CheckSwarmLog(std::string(kLog) + kLog);
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 1);
  EXPECT_EQ(proof->redone, 1);
}

TEST(SwarmLogTest, EachTamperingIsFound) {
  const std::pair<const char*, const char*> kTampered[] = {
      {"shares=2:0,1", "shares=2:0"},        // one left out
      {"shares=2:0,1", "shares=2:0,0,1"},    // one twice
      {"shares=2:0,1", "shares=2:0;4:1"},    // of a peer that had none
      {"shares=1:0;3:1", "shares=0:0;3:1"},  // of the peer that was lost
      {"lose step=0 stage=0 micro_batch=0 peer=0\n", ""},
      {"count step=0 stage=0 micro_batch=1 peer=3\n", ""},
      {"commit step=0 stage=1 shares=2:0,1\n", ""},
      {"commit step=0 stage=1", "commit step=0 stage=0"},
      {"step step=0", "step step=1"},
      {"count step=0 stage=1 micro_batch=1", "count step=0 stage=1 micro_batch=7"},
      {"micro_batch=1 peer=2", "micro_batch=x peer=2"},
      {"join peer", "jion peer"},
      {"start step=0", "start step=-1"},
  };
  for (const auto& [from, to] : kTampered) {
    const std::string log = absl::StrReplaceAll(kLog, {{from, to}});
    ASSERT_NE(log, kLog) << from;
    EXPECT_THAT(CheckSwarmLog(log), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line ")))
        << from << " -> " << to;
  }
}

TEST(SwarmLog, AFileHasEveryLineOrAnError) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/swarm.log");
  for (int life = 0; life < 2; ++life) {
    const auto file = SwarmLogFile::Open(path);
    ASSERT_THAT(file, IsOk());
    (*file)->Add("start step=0 stages=1 micro_batches=1 epoch=1\n");
    (*file)->Add("refuse why=\"trainer 7: other data\"\n");
    EXPECT_THAT((*file)->status(), IsOk());
  }
  const auto text = ReadFile(path);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 4);
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
