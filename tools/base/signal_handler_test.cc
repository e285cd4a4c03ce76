#include "tools/base/signal_handler.h"

#include <cstdint>
#include <cstdlib>

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
  struct sigaction before = {};
  CatchSignal(SIGUSR1, NoteFrame, &before);
  EXPECT_EQ(before.sa_handler, SIG_DFL);
  std::raise(SIGUSR1);
  ASSERT_NE(g_frame, 0);
  EXPECT_GT(std::abs(g_frame - reinterpret_cast<intptr_t>(&here)), 256 << 10);
  struct sigaction now = {};
  sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace pipelab
