#include "experiments/modern/megatron_stages.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(MegatronLayout, EvenStages) {
  EXPECT_EQ(MegatronLayout(80, 0, 1), "");
  EXPECT_EQ(MegatronLayout(80, 0, 20), "Et*4|(t*4|)*18t*4L");
}

// Llama 3.1 405B, of which MLPerf's logs print the first; Qwen3-235B.
TEST(MegatronLayout, TheEndsCountAsABlock) {
  EXPECT_EQ(MegatronLayout(126, 0, 64), "Et|(t*2|)*62tL");
  EXPECT_EQ(MegatronLayout(126, 0, 128), "E|(t|)*126L");
  EXPECT_EQ(MegatronLayout(94, 0, 8), "Et*11|(t*12|)*6t*11L");
}

TEST(MegatronLayout, TheLastStageHasTheRestAndTheHeads) {
  EXPECT_EQ(MegatronLayout(61, 1, 16), "Et*4|(t*4|)*14tmL");  // DeepSeek-V3
  EXPECT_EQ(MegatronLayout(61, 0, 8), "Et*8|(t*8|)*6t*5L");   // Kimi K2
}

TEST(MegatronLayout, NoneForMoreStagesThanBlocks) {
  EXPECT_EQ(MegatronLayout(61, 0, 48), "");
  EXPECT_EQ(MegatronLayout(10, 0, 64), "");
}

}  // namespace
}  // namespace pipelab
