#include "experiments/formulas/published_formulas.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(FormulaCellTest, ErrorIsTheWayToTheRange) {
  EXPECT_EQ((FormulaCell{"", "", 2, 4, 3}).error(), 0);
  EXPECT_NEAR((FormulaCell{"", "", 2, 4, 1}).error(), -0.5, 1e-12);
  EXPECT_NEAR((FormulaCell{"", "", 2, 4, 5}).error(), 0.25, 1e-12);
  EXPECT_EQ((FormulaCell{"", "", 0, 0, 0}).error(), 0);
  EXPECT_EQ((FormulaCell{"", "", 0, 0, 3}).error(), 1);
}

TEST(PublishedFormulasTest, SchedulesAreThoseOfThePapers) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FormulaGroup> groups, ScheduleFormulas());
  EXPECT_GE(groups.size(), 14u);
  for (const FormulaGroup& group : groups) {
    const Claim c = ClaimOf(group);
    EXPECT_THAT(CheckClaim(c), IsOk());
    EXPECT_GE(c.cells->cells, 4) << group.id;
    EXPECT_EQ(c.state, ClaimState::kMet) << group.id << ": " << c.ErrorText();
  }
  EXPECT_THAT(FormulaTable(groups).status(), IsOk());
}

TEST(PublishedFormulasTest, OrdersAndPlacesAreThoseOfThePapers) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FormulaGroup> groups, OrderFormulas());
  EXPECT_EQ(groups.size(), 5u);
  for (const FormulaGroup& group : groups) {
    const Claim c = ClaimOf(group);
    EXPECT_THAT(CheckClaim(c), IsOk());
    EXPECT_GE(c.cells->cells, 4) << group.id;
    EXPECT_EQ(c.state, ClaimState::kMet) << group.id << ": " << c.ErrorText();
  }
}

TEST(PublishedFormulasTest, GraphsCountWhatTheMaskLeaves) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FormulaGroup> groups, ModelFormulas());
  for (const FormulaGroup& group : groups) {
    const Claim c = ClaimOf(group);
    EXPECT_THAT(CheckClaim(c), IsOk());
    EXPECT_EQ(c.cells->cells % 5, 0) << group.id;
    const bool flops =
        group.id == "formulas.megatron_flops" || group.id == "formulas.zero_bubble_flops";
    EXPECT_EQ(c.state == ClaimState::kMissed, flops) << group.id << ": " << c.ErrorText();
    for (const FormulaCell& cell : group.cells) {
      EXPECT_LT(cell.error(), 1e-4) << group.id << " " << cell.sizes;  // never more
      EXPECT_GT(cell.error(), -0.07) << group.id << " " << cell.sizes;
    }
  }
}

}  // namespace
}  // namespace pipelab
