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

TEST(PublishedFormulasTest, GraphsComputeWhatTheFormulasCount) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FormulaGroup> groups, ModelFormulas());
  for (const FormulaGroup& group : groups) {
    const Claim c = ClaimOf(group);
    EXPECT_THAT(CheckClaim(c), IsOk());
    EXPECT_EQ(c.cells->cells % 5, 0) << group.id;
    EXPECT_EQ(c.state, ClaimState::kMet) << group.id << ": " << c.ErrorText();
  }
}

// With the authors' times, and nothing else: each scheme's rate, a difference of 0.5 points at
// most.
TEST(PublishedFormulasTest, BubbleRatesOfMeasuredTimes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FormulaGroup> groups, BubbleRates());
  ASSERT_EQ(groups.size(), 1u);
  const Claim c = ClaimOf(groups[0]);
  EXPECT_THAT(CheckClaim(c), IsOk());
  EXPECT_EQ(c.cells->cells, 60);
  EXPECT_EQ(c.accepted, "each cell within 0.005");
  for (const FormulaCell& cell : groups[0].cells) {
    // The rates have four digits; the automatic scheduler may find a better order.
    const bool automatic = cell.scheme == "zb2p";
    EXPECT_LT(cell.error(true), automatic ? 0.005 : 5.1e-5) << cell.scheme << " " << cell.sizes;
    EXPECT_GT(cell.error(true), automatic ? -0.05 : -5.1e-5) << cell.scheme << " " << cell.sizes;
  }
  EXPECT_EQ((FormulaCell{"", "", 0.2, 0.2, 0.21}).error(true), 0.21 - 0.2);
}

}  // namespace
}  // namespace pipelab
