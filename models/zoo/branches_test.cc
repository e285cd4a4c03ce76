// Models of branches: what meets where, refusals, and their parallel stages.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/candle_uno.h"
#include "models/zoo/case_study.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/mmt.h"
#include "models/zoo/transformer.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DlrmConfig SmallDlrm() {
  DlrmConfig c;
  c.dense = {{"dense", 6}, {"dense", 6}};  // one field may have several branches
  c.bags = {{"genres", 4, 9}, {"fans", 7, 15}, {"user", 1, 5}};
  c.dense_layers = 3;
  c.hidden = 10;
  c.embedding = 4;
  c.join_layers = 1;
  return c;
}

TEST(Dlrm, BranchesMeetInOneJoin) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildDlrm(SmallDlrm()));
  ASSERT_EQ(g.layers.size(), 2 * 4 + 3 + 4);
  EXPECT_THAT(g.layers[11].inputs, ElementsAre(3, 7, 8, 9, 10));
  EXPECT_THAT(g.layers[11].output_shape, ElementsAre(1, 2 * 10 + 3 * 4));
  EXPECT_EQ(LossLayer(g), 14);
  EXPECT_EQ(g.num_parameters(),
            2 * (6 * 10 + 10 + 2 * (10 * 10 + 10)) + (9 + 15 + 5) * 4 + (32 * 10 + 10) + (10 + 1));
  // Dense branches alone have products.
  EXPECT_EQ(g.layers[1].costs(3).forward.value(), 2.0 * 3 * 6 * 10);
  EXPECT_EQ(g.layers[8].costs(3).forward.value(), 0);
  EXPECT_EQ(g.layers[8].costs(3).output, Bytes(4 * 3 * 4));
}

TEST(BranchStages, AreNumberedSideBySide) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildDlrm(SmallDlrm()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> one, BranchStages(g, 1));
  EXPECT_THAT(one, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 5));
  // Bags have one layer, so one stage.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> two, BranchStages(g, 2));
  EXPECT_THAT(two, ElementsAre(0, 0, 5, 5, 1, 1, 6, 6, 2, 3, 4, 7, 7, 7, 7));
}

TEST(BranchStages, AreThoseOfMmt) {
  MmtConfig c = PublishedMmt();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildMmt(c));
  for (int n : {1, 2, 4}) EXPECT_EQ(*BranchStages(g, n), *MmtParallelStages(c, n)) << n;
}

// GraphPipe's case study on 8 devices: the two branches in 4 stages each, the join with the last
// ones or apart.
TEST(BranchStages, OfTheCaseStudyHaveDepthFour) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildCaseStudy(CaseStudyConfig()));
  ASSERT_EQ(g.layers.size(), 2 * (1 + 4 * 3) + 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> stages, BranchStages(g, 4));
  EXPECT_EQ(stages.back(), 8);
  EXPECT_THAT(g.layers[26].inputs, ElementsAre(12, 25));
}

// A chain has no join; the encoder runs beside the decoder's first attention.
TEST(BranchStages, OfOtherModels) {
  GptConfig c;
  c.layers = 1;
  c.hidden = 8;
  c.heads = 2;
  c.tokens = 4;
  c.vocabulary = 5;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph gpt, BuildGpt(c));
  EXPECT_THAT(*BranchStages(gpt, 2), ElementsAre(0, 0, 1, 1));
  TransformerConfig t = TransformerLha(1, 8, 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph transformer, BuildTransformer(t));
  EXPECT_THAT(*BranchStages(transformer, 1), ElementsAre(0, 0, 0, 0, 1, 1, 2, 2, 2));
}

TEST(BranchStages, RefuseOtherGraphs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildDlrm(SmallDlrm()));
  EXPECT_THAT(BranchStages(g, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 stages of a branch")));
  ModelGraph late = g;
  late.layers.push_back(g.layers[0]);
  EXPECT_THAT(BranchStages(late, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("starts behind the join")));
  g.layers[2].inputs = {0};
  EXPECT_THAT(BranchStages(g, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dense1\" takes another layer than the one before")));
}

TEST(Branches, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](const auto& graph, const char* what) {
    EXPECT_THAT(graph, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  DlrmConfig d = SmallDlrm();
  d.hidden = 0;
  expect(BuildDlrm(d), "--hidden=0: ");
  d = SmallDlrm();
  d.dense[1].features = 0;
  expect(BuildDlrm(d), "--dense: branch 1 reads \"dense\" with 0 features");
  d = SmallDlrm();
  d.bags[2].rows = 0;
  expect(BuildDlrm(d), "--bags: bag 2 is \"user\" of 1 ids and 0 rows");
  d.dense.clear();
  d.bags.clear();
  expect(BuildDlrm(d), "--branches=0: must be from 1 to 64");
  CandleUnoConfig c = PublishedCandleUno(16);
  EXPECT_THAT(BuildCandleUno(c), IsOk());
  c.layers = 0;
  expect(BuildCandleUno(c), "--layers=0: ");
  c = PublishedCandleUno();
  c.branches[0].field = "";
  expect(BuildCandleUno(c), "--branches: branch 0 reads \"\"");
  CaseStudyConfig s;
  s.heads = 3;
  expect(BuildCaseStudy(s), "--heads=3: heads must divide --hidden=1024");
}

// Sizes of the groups.
std::vector<int> Groups(ModelGraph graph) {
  const GroupedModel model = GroupForPlanning(std::move(graph));
  std::vector<int> sizes(model.num_groups());
  for (int group : model.group_of_layer) ++sizes[group];
  return sizes;
}

TEST(GroupForPlanning, BlocksAndLayersWithParameters) {
  MmtConfig mmt = PublishedMmt();
  mmt.branches = 2;
  mmt.layers = 3;
  // An embedding and three blocks a branch; the concat with its dense layer; the head.
  EXPECT_THAT(Groups(*BuildMmt(mmt)), testing::ElementsAre(1, 2, 2, 2, 1, 2, 2, 2, 2, 1));
  // Four dense layers a branch, the first with its data; the join's four, the first with the
  // concat; the number and its loss.
  EXPECT_THAT(Groups(*BuildCandleUno(PublishedCandleUno(2))),
              testing::ElementsAre(2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2));
  CaseStudyConfig study;
  study.repeats = 1;
  EXPECT_THAT(Groups(*BuildCaseStudy(study)), testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2));
  EXPECT_EQ(Groups(*BuildDlrm(PublishedDlrm())).size(), 7 * 4 + 7 + 4 + 1);
}

}  // namespace
}  // namespace pipelab
