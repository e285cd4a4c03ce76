#include "models/zoo/mmt.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MmtConfig SmallMmt() {
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
int64_t MmtParameters(const MmtConfig& m) {
  const int64_t c = m.hidden, f = m.feed_forward;
  const int64_t layer = 4 * c * c + 2 * c * f + 9 * c + f;
  const int64_t branch = m.layers * layer + (m.vocabulary + m.tokens) * c;
  return m.branches * branch + m.branches * c * c + c + 2 * c + m.vocabulary * c;
}

TEST(Mmt, ParameterCountsFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph small, BuildMmt(SmallMmt()));
  EXPECT_EQ(small.num_parameters(), MmtParameters(SmallMmt()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph big, BuildMmt(PublishedMmt()));
  EXPECT_EQ(big.num_parameters(), MmtParameters(PublishedMmt()));
  // 32 Transformer layers of 12,596,224, tables of 33,030,144 a branch, 4,195,328 of join, the
  // head.
  EXPECT_EQ(big.num_parameters(),
            32 * int64_t{12'596'224} + 4 * 33'030'144 + 4'195'328 + 2'048 + 32'768'000);
}

TEST(Mmt, BranchesAreJoinedAtTheEnd) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(SmallMmt()));
  ASSERT_EQ(g.layers.size(), 3 * 5 + 3);
  EXPECT_THAT(g.layers[5].inputs, ElementsAre());  // the second branch's embedding
  EXPECT_EQ(g.layers[5].name, "branch1/embedding");
  EXPECT_THAT(g.layers[15].inputs, ElementsAre(4, 9, 14));
  EXPECT_THAT(g.layers[15].output_shape, ElementsAre(10, 72));
  EXPECT_THAT(g.layers[16].output_shape, ElementsAre(10, 24));
  EXPECT_EQ(LossLayer(g), 17);
}

TEST(Mmt, FlopsOfTheJoinFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(SmallMmt()));
  EXPECT_EQ(g.layers[15].costs(5).forward.value(), 0);
  EXPECT_EQ(g.layers[16].costs(5).forward.value(), 2.0 * 5 * 10 * 72 * 24);
  EXPECT_EQ(g.layers[16].costs(5).output, Bytes(4 * 5 * 10 * 24));
}

MmtConfig SmallModalities() {
  MmtConfig c = SmallMmt();
  c.branches = c.tokens = c.vocabulary = 0;
  MmtModality text, picture;
  text.field = "name";
  text.length_field = "name_length";
  text.tokens = 10;
  text.vocabulary = 17;
  picture.kind = MmtModality::kPicture;
  picture.field = "picture";
  picture.height = 6;
  picture.width = 8;
  picture.channels = 3;
  picture.patch = 2;
  c.modalities = {text, picture};
  c.classes = 5;
  return c;
}

// Each branch has its embedding, its Transformer layers and a norm; the join brings 2 C to C.
TEST(MmtOfModalities, ParameterCountsFollowTheClosedForm) {
  const MmtConfig m = SmallModalities();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(m));
  const int64_t c = m.hidden, f = m.feed_forward, patches = 3 * 4;
  const int64_t layers = m.layers * (4 * c * c + 2 * c * f + 9 * c + f) + 2 * c;
  const int64_t text = (17 + 10) * c + layers;
  const int64_t picture = (2 * 2 * 3) * c + c + patches * c + layers;
  EXPECT_EQ(g.num_parameters(), text + picture + 2 * c * c + c + c * 5 + 5);
}

TEST(MmtOfModalities, EachBranchReadsItsFieldAndEndsInOneRow) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(SmallModalities()));
  ASSERT_EQ(g.layers.size(), 2 * (1 + 4 + 2) + 3);
  EXPECT_THAT(g.layers[0].data, ElementsAre(DataField{"name", FieldType::kId, {10}, 17}));
  EXPECT_THAT(g.layers[1].data, ElementsAre(DataField{"name_length", FieldType::kId, {1}, 11}));
  EXPECT_THAT(g.layers[7].data, ElementsAre(DataField{"picture", FieldType::kFloat, {6, 8, 3}}));
  EXPECT_THAT(g.layers[8].data, ElementsAre());  // all patches are keys
  EXPECT_THAT(g.layers[7].output_shape, ElementsAre(12, 24));
  EXPECT_THAT(g.layers[14].inputs, ElementsAre(6, 13));
  EXPECT_THAT(g.layers[14].output_shape, ElementsAre(1, 48));
  EXPECT_EQ(LossLayer(g), 16);
  EXPECT_THAT(g.layers[16].data, ElementsAre(DataField{kTargets, FieldType::kId, {1}, 5}));
}

TEST(MmtOfModalities, CostsFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(SmallModalities()));
  const LayerCosts patches = g.layers[7].costs(3);
  EXPECT_EQ(patches.forward.value(), 2.0 * 3 * 12 * 12 * 24);  // a patch has 12 numbers
  EXPECT_EQ(patches.backward_input.value(), 0);
  EXPECT_EQ(patches.backward_weight.value(), patches.forward.value());
  EXPECT_EQ(patches.kept, Bytes(0));
  EXPECT_EQ(patches.output, Bytes(4 * 3 * 12 * 24));
  EXPECT_EQ(g.layers[15].costs(3).forward.value(), 2.0 * 3 * 48 * 24);
}

TEST(MmtOfModalities, OneBranchAloneHasTheSameTrunk) {
  MmtConfig both = SmallModalities(), text = both, picture = both;
  text.modalities.pop_back();
  picture.modalities.erase(picture.modalities.begin());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(both));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph a, BuildMmt(text));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph b, BuildMmt(picture));
  // Together they have a join's bias and a head's parameters more.
  EXPECT_EQ(a.num_parameters() + b.num_parameters(), g.num_parameters() + 24 + 24 * 5 + 5);
  EXPECT_EQ(a.layers.size(), 7u + 3);
}

TEST(MmtOfModalities, ParallelStages) {
  const MmtConfig c = SmallModalities();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> two, MmtParallelStages(c, 2));
  EXPECT_THAT(two, ElementsAre(0, 0, 0, 0, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 4, 4, 4));
  EXPECT_THAT(MmtParallelStages(c, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("7 layers in 8 stages")));
}

TEST(MmtOfModalities, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](const MmtConfig& c, const char* what) {
    EXPECT_THAT(BuildMmt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  MmtConfig c = SmallModalities();
  c.branches = 2;
  expect(c, "--branches=2: must be 0 with 2 modalities");
  c = SmallModalities();
  c.modalities[0].field = "";
  expect(c, "--modalities: a branch names no field");
  c = SmallModalities();
  c.modalities[0].tokens = 0;
  expect(c, "--tokens=0: ");
  c = SmallModalities();
  c.modalities[0].vocabulary = -3;
  expect(c, "--vocabulary=-3: ");
  c = SmallModalities();
  c.modalities[1].patch = 4;
  expect(c, "--patch=4: must divide --height=6 and --width=8");
  c = SmallModalities();
  c.modalities[1].channels = 0;
  expect(c, "--channels=0: ");
  c = SmallModalities();
  c.classes = 0;
  expect(c, "--classes=0: ");
  c = SmallModalities();
  c.modalities.resize(65, c.modalities[0]);
  expect(c, "--modalities=65: must be from 1 to 64");
}

TEST(Mmt, ParallelStagesAreNumberedSideBySide) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> one, MmtParallelStages(SmallMmt(), 1));
  EXPECT_THAT(one, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> two, MmtParallelStages(SmallMmt(), 2));
  EXPECT_THAT(two, ElementsAre(0, 0, 0, 3, 3, 1, 1, 1, 4, 4, 2, 2, 2, 5, 5, 6, 6, 6));
  EXPECT_THAT(MmtParallelStages(SmallMmt(), 6),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5 layers in 6 stages")));
}

TEST(Mmt, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](const MmtConfig& c, const char* what) {
    EXPECT_THAT(BuildMmt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  MmtConfig c = SmallMmt();
  c.branches = 0;
  expect(c, "--branches=0: must be from 1 to 64");
  c = SmallMmt();
  c.heads = 5;
  expect(c, "--heads=5: heads must divide --hidden=24");
  c = SmallMmt();
  c.feed_forward = 0;
  expect(c, "--feed_forward=0: ");
  c = SmallMmt();
  c.layers = -1;
  expect(c, "--layers=-1: ");
  c = SmallMmt();
  c.dropout = 1;
  expect(c, "--dropout=1: ");
}

}  // namespace
}  // namespace pipelab
