#include "tools/base/signal_handler.h"

#include <cstdint>
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

volatile intptr_t g_frame = 0;

void NoteFrame(int) {
  volatile char here = 0;
  g_frame = reinterpret_cast<intptr_t>(&here);
}

TEST(SignalHandler, RunsOnceAndAwayFromTheStack) {
  volatile char here = 0;
  SignalAction before;
  CatchSignal(SIGUSR1, NoteFrame, &before);
  EXPECT_EQ(before.action.sa_handler, SIG_DFL);
  std::raise(SIGUSR1);
  ASSERT_NE(g_frame, 0);
  EXPECT_GT(std::abs(g_frame - reinterpret_cast<intptr_t>(&here)), 256 << 10);
  std::signal(SIGUSR1, SIG_DFL);
}

int g_calls = 0;
void CountCall(int) { ++g_calls; }

TEST(SignalHandler, AnInnerHandlerLeavesTheOuterOneAsItWas) {
  g_calls = 0;
  CatchSignal(SIGUSR1, CountCall);
  SignalAction before;
  CatchSignal(SIGUSR1, NoteFrame, &before);
  std::raise(SIGUSR1);
  EXPECT_EQ(g_calls, 0);
  RestoreSignal(SIGUSR1, before);
  std::raise(SIGUSR1);
  EXPECT_EQ(g_calls, 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(SignalHandlerDeathTest, ASignalSentTwiceIsOneAndALaterOneEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  g_calls = 0;
  CatchSignal(SIGUSR1, CountCall);
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  EXPECT_EQ(g_calls, 1);
  EXPECT_EXIT(
      {
        CatchSignal(SIGUSR1, CountCall);
        std::raise(SIGUSR1);
        absl::SleepFor(absl::Milliseconds(600));
        std::raise(SIGUSR1);
      },
      testing::KilledBySignal(SIGUSR1), "");
  std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace pipelab
