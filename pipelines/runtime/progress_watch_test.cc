#include "pipelines/runtime/progress_watch.h"

#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

using State = ProgressWatch::State;

const absl::Time kBegin = absl::UnixEpoch();
absl::Time TimeAt(int seconds) { return kBegin + absl::Seconds(seconds); }

State Computes(int64_t moves) { return {.running = true, .waits = false, .moves = moves}; }
State Waits(int64_t moves) { return {.running = true, .waits = true, .moves = moves}; }
constexpr State kDone = {.running = false, .waits = false, .moves = 100};

class ProgressWatchTest : public testing::Test {
 protected:
  ProgressWatchTest() { watch_.Begin(kBegin); }
  ProgressWatch::What Look(const std::vector<State>& states, int seconds) {
    const ProgressWatch::Finding found = watch_.Look(states, TimeAt(seconds));
    device_ = found.device;
    return found.what;
  }
  ProgressWatch watch_{absl::Seconds(60), absl::Seconds(600)};
  int device_ = -1;
};

TEST_F(ProgressWatchTest, ADeviceThatComputesIsProgress) {
  for (int s = 0; s < 600; s += 15) {
    EXPECT_EQ(Look({Computes(7), Waits(3), Waits(5)}, s), ProgressWatch::kFine) << s;
  }
  // From its end on, and not before, those that wait have the limit.
  EXPECT_EQ(Look({Waits(8), Waits(3), Waits(5)}, 600), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(8), Waits(3), Waits(5)}, 659), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(8), Waits(3), Waits(5)}, 660), ProgressWatch::kAllWait);
}

TEST_F(ProgressWatchTest, AllDevicesInOneLongActionAreProgress) {
  for (int s = 0; s <= 90; s += 15) {
    EXPECT_EQ(Look({Computes(1), Computes(1)}, s), ProgressWatch::kFine) << s;
  }
}

TEST_F(ProgressWatchTest, SoIsOneThatHasComeFurtherBetweenTwoLooks) {
  for (int s = 0; s < 600; s += 50) {
    EXPECT_EQ(Look({Waits(s), Waits(3)}, s), ProgressWatch::kFine) << s;
  }
}

TEST_F(ProgressWatchTest, NamesTheOneThatHasWaitedLongest) {
  EXPECT_EQ(Look({Computes(1), Computes(1), Computes(1)}, 10), ProgressWatch::kFine);
  EXPECT_EQ(Look({Computes(2), Waits(2), Computes(1)}, 20), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(3), Waits(2), Waits(2)}, 30), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(3), Waits(2), Waits(2)}, 90), ProgressWatch::kAllWait);
  EXPECT_EQ(device_, 1);
}

TEST_F(ProgressWatchTest, WhoIsDoneHelpsNobody) {
  EXPECT_EQ(Look({Computes(1), Waits(2)}, 10), ProgressWatch::kFine);
  EXPECT_EQ(Look({kDone, Waits(2)}, 20), ProgressWatch::kFine);
  EXPECT_EQ(Look({kDone, Waits(2)}, 79), ProgressWatch::kFine);
  EXPECT_EQ(Look({kDone, Waits(2)}, 80), ProgressWatch::kAllWait);
  EXPECT_EQ(device_, 1);
  EXPECT_EQ(Look({kDone, kDone}, 1000), ProgressWatch::kFine);
}

TEST_F(ProgressWatchTest, AnActionHasItsOwnLimit) {
  EXPECT_EQ(Look({Waits(2), Computes(1)}, 5), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(2), Computes(1)}, 604), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(2), Computes(1)}, 605), ProgressWatch::kStuck);
  EXPECT_EQ(device_, 1);
}

TEST_F(ProgressWatchTest, AStepBeginsAnew) {
  EXPECT_EQ(Look({Waits(2)}, 5), ProgressWatch::kFine);
  watch_.Begin(TimeAt(1000));
  EXPECT_EQ(Look({Waits(2)}, 1001), ProgressWatch::kFine);
  EXPECT_EQ(Look({Waits(2)}, 1061), ProgressWatch::kAllWait);
}

}  // namespace
}  // namespace pipelab
