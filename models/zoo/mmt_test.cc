#include "models/zoo/mmt.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MmtConfig Small() {
  MmtConfig c;
  c.branches = 3;
  c.layers = 2;
  c.hidden = 24;
  c.heads = 4;
  c.tokens = 10;
  c.feed_forward = 50;
  c.vocabulary = 17;
  return c;
}

// A Transformer layer of width C and inner width F: 4 C^2 + 2 C F of matrices, 9 C + F of biases
// and norms. A branch adds its tables, the join brings B C to C, the head has a norm and a table.
int64_t ClosedForm(const MmtConfig& m) {
  const int64_t c = m.hidden, f = m.feed_forward;
  const int64_t layer = 4 * c * c + 2 * c * f + 9 * c + f;
  const int64_t branch = m.layers * layer + (m.vocabulary + m.tokens) * c;
  return m.branches * branch + m.branches * c * c + c + 2 * c + m.vocabulary * c;
}

TEST(Mmt, ParameterCountsFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph small, BuildMmt(Small()));
  EXPECT_EQ(small.num_parameters(), ClosedForm(Small()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph big, BuildMmt(PublishedMmt()));
  EXPECT_EQ(big.num_parameters(), ClosedForm(PublishedMmt()));
  // 32 Transformer layers of 12,596,224, tables of 33,030,144 a branch, 4,195,328 of join, the
  // head.
  EXPECT_EQ(big.num_parameters(),
            32 * int64_t{12'596'224} + 4 * 33'030'144 + 4'195'328 + 2'048 + 32'768'000);
}

TEST(Mmt, BranchesAreJoinedAtTheEnd) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(Small()));
  ASSERT_EQ(g.layers.size(), 3 * 5 + 3);
  EXPECT_THAT(g.layers[5].inputs, ElementsAre());  // the second branch's embedding
  EXPECT_EQ(g.layers[5].name, "branch1/embedding");
  EXPECT_THAT(g.layers[15].inputs, ElementsAre(4, 9, 14));
  EXPECT_THAT(g.layers[15].output_shape, ElementsAre(10, 72));
  EXPECT_THAT(g.layers[16].output_shape, ElementsAre(10, 24));
  EXPECT_EQ(LossLayer(g), 17);
}

TEST(Mmt, FlopsOfTheJoinFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(Small()));
  EXPECT_EQ(g.layers[15].costs(5).forward.value(), 0);
  EXPECT_EQ(g.layers[16].costs(5).forward.value(), 2.0 * 5 * 10 * 72 * 24);
  EXPECT_EQ(g.layers[16].costs(5).output, Bytes(4 * 5 * 10 * 24));
}

TEST(Mmt, ParallelStagesAreNumberedSideBySide) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> one, MmtParallelStages(Small(), 1));
  EXPECT_THAT(one, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> two, MmtParallelStages(Small(), 2));
  EXPECT_THAT(two, ElementsAre(0, 0, 0, 3, 3, 1, 1, 1, 4, 4, 2, 2, 2, 5, 5, 6, 6, 6));
  EXPECT_THAT(MmtParallelStages(Small(), 6),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5 layers in 6 stages")));
}

TEST(Mmt, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](MmtConfig c, const char* what) {
    EXPECT_THAT(BuildMmt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  MmtConfig c = Small();
  c.branches = 0;
  expect(c, "--branches=0: must be from 1 to 64");
  c = Small();
  c.heads = 5;
  expect(c, "--heads=5: heads must divide --hidden=24");
  c = Small();
  c.feed_forward = 0;
  expect(c, "--feed_forward=0: ");
  c = Small();
  c.layers = -1;
  expect(c, "--layers=-1: ");
  c = Small();
  c.dropout = 1;
  expect(c, "--dropout=1: ");
}

}  // namespace
}  // namespace pipelab
