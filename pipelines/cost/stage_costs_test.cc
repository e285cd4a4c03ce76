// The paper side of stage costs. That bytes are exact is held beside the code that runs
// (pipelines/runtime/layer_stage_memory_test.cc).
#include "pipelines/cost/stage_costs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

ModelGraph Gpt(bool tied) {
  GptConfig c;
  c.layers = 2;
  c.hidden = 8;
  c.heads = 2;
  c.tokens = 4;
  c.vocabulary = 10;
  c.tied_embeddings = tied;
  return *BuildGpt(c);
}

ModelPartition Ranges(const std::vector<int>& first_layers) {
  return *MakeRangePartition(Gpt(false), first_layers);
}

TEST(StageCosts, TimesAreFlopsAtTheRate) {
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);  // a flop a nanosecond
  PIPELAB_ASSERT_OK_AND_ASSIGN(CostTable t,
                               ComputeStageCosts(Gpt(false), Ranges({0, 1, 3}), 3, options));
  ASSERT_EQ(t.stages.size(), 3);
  // The embedding multiplies nothing; m = 12 rows of 8.
  EXPECT_EQ(t.stages[0].forward.value(), 0);
  const int64_t attention = 12 * (8 * 8 * 8 + 4 * 4 * 8), mlp = 12 * 16 * 8 * 8;
  EXPECT_EQ(t.stages[1].forward.value(), attention + mlp);
  EXPECT_EQ(t.stages[1].recompute.value(), attention + mlp);
  EXPECT_EQ(t.stages[1].backward_input.value(),
            attention + mlp + 12 * 6 * 4 * 8);  // three more products of scores
  EXPECT_EQ(t.stages[1].backward_weight.value(), 12 * 8 * 8 * 8 + mlp);
  EXPECT_EQ(t.stages[1].step.value(), 13 * (12 * 8 * 8 + 13 * 8));
  EXPECT_EQ(t.stages[2].forward.value(), attention + mlp + 2 * 12 * 8 * 10);
  EXPECT_EQ(t.edge_bytes, (std::vector<Bytes>{Bytes(4 * 12 * 8), Bytes(4 * 12 * 8)}));
}

TEST(StageCosts, StateCountsATieOnceButForItsGradients) {
  const int64_t table = 10 * 8, all = Gpt(true).num_parameters();
  EXPECT_EQ(ComputeStageMemory(Gpt(true), *MakeRangePartition(Gpt(true), {0}), 0, 1).state,
            Bytes(4) * (4 * all + table));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      CostTable t, ComputeStageCosts(Gpt(true), *MakeRangePartition(Gpt(true), {0, 3}), 1, {}));
  EXPECT_EQ(t.stages[0].memory.state + t.stages[1].memory.state, Bytes(4) * 4 * (all + table));
  EXPECT_EQ(ComputeStageMemory(Gpt(false), Ranges({0}), 0, 1).state, Bytes(4) * 4 * (all + table));
}

TEST(StageCosts, RefusesSizesWithoutMeaning) {
  EXPECT_THAT(
      ComputeStageCosts(Gpt(false), Ranges({0, 2}), 0, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("micro-batches of 0 samples")));
  StageCostOptions options;
  options.rate = FlopsPerSecond(0);
  EXPECT_THAT(ComputeStageCosts(Gpt(false), Ranges({0}), 1, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rate of 0")));
}

}  // namespace
}  // namespace pipelab
