#include "experiments/modern/nanotron_stages.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

ModernModel Model(int64_t layers, int64_t hidden, int64_t heads, int64_t feed_forward) {
  ModernModel m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_size = hidden / heads;
  m.feed_forward = feed_forward;
  m.vocabulary = 131072;
  return m;
}

// The model has 8.86 billion parameters: the head costs 2.2 blocks, an eighth of all is 4.28.
TEST(NanotronLayout, TheBlockThatGoesAboveAShareStillBelongsToIt) {
  const ModernModel m = Model(32, 4096, 32, 14336);
  EXPECT_EQ(NanotronLayout(m, 1), "");
  EXPECT_EQ(NanotronLayout(m, 2), "Et*18|t*14L");
  EXPECT_EQ(NanotronLayout(m, 4), "Et*9|t*9|t*8|t*6L");
  EXPECT_EQ(NanotronLayout(m, 8), "Et*5|(t*4|)*2t*5|(t*4|)*3t*2L");
}

TEST(NanotronLayout, TheHeadIsWithTheLastStage) {
  EXPECT_EQ(NanotronLayout(Model(32, 4096, 32, 14336), 16), "Et*3|(t*2|)*6t*3|(t*2|)*7L");
  // The head costs four blocks and has the seventh stage of eight; the loss has the last one.
  EXPECT_EQ(NanotronLayout(Model(16, 2048, 32, 8192), 8), "Et*3|t*3|t*2|t*3|(t*2|)*2t|L");
}

TEST(NanotronLayout, NoneForMoreStagesThanBlocks) {
  EXPECT_EQ(NanotronLayout(Model(28, 3072, 32, 8192), 32), "");
}

}  // namespace
}  // namespace pipelab
