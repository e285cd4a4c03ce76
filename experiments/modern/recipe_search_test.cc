#include "experiments/modern/recipe_search.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "experiments/modern/modern_machines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Llama-3 8B on 16 H100s.
class RecipeSearchTest : public testing::Test {
 protected:
  RecipeSearchTest() : machines_(LoadModernMachines().value()) {
    ModernModel& model = models_.emplace_back();
    model.id = "llama3-8b";
    model.layers = 32;
    model.hidden = 4096;
    model.heads = 32;
    model.kv_heads = 8;
    model.head_size = 128;
    model.feed_forward = 14336;
    model.vocabulary = 128256;
    model.attention = "gqa swiglu";
  }

  ModernRow Row(const std::string& group, int64_t tensor, int64_t pipeline) {
    ModernRow row;
    row.id = absl::StrCat(group, "-t", tensor, "p", pipeline);
    row.group = group;
    row.gpu = "H100";
    row.precision = "BF16";
    row.model = "llama3-8b";
    row.gpus = 16;
    row.tokens = 8192;
    row.batch = 32;
    row.micro_batch = 1;
    row.tensor = tensor;
    row.pipeline = pipeline;
    row.step_seconds = 1;
    return row;
  }

  std::vector<RecipeChoice> ChoicesOf(const std::vector<ModernRow>& rows) {
    const ModernData data = {models_, rows};
    absl::StatusOr<std::vector<RecipeChoice>> choices =
        SearchForRecipes(PredictAll(data, machines_), models_, machines_);
    EXPECT_THAT(choices, IsOk());
    return choices.ok() ? *std::move(choices) : std::vector<RecipeChoice>();
  }

  std::vector<ModernModel> models_;
  const ModernMachines machines_;
};

TEST_F(RecipeSearchTest, OfGoodAndBadLayouts) {
  const std::vector<ModernRow> rows = {Row("mbridge", 8, 2), Row("mbridge", 2, 1)};
  const std::vector<RecipeChoice> choices = ChoicesOf(rows);
  ASSERT_EQ(choices.size(), 1u);
  const RecipeChoice& choice = choices[0];
  ASSERT_EQ(choice.recipes.size(), 2u);
  for (const PublishedRecipe& recipe : choice.recipes) {
    EXPECT_TRUE(recipe.fits) << recipe.id;
    EXPECT_GE(recipe.seconds, choice.seconds) << "the search looks at it, too";
  }
  EXPECT_EQ(choice.recipes[0].id, "mbridge-t2p1");
  EXPECT_EQ(choice.best.devices(), 16);
  EXPECT_EQ(choice.best.batch(), 32);
  EXPECT_FALSE(IsNear(choice, choice.recipes[1])) << "8 devices for so small a model";
  const Claim claim = RecipeClaim(choices);
  EXPECT_THAT(CheckClaim(claim), IsOk());
  EXPECT_THAT(claim.state, ClaimState::kMissed);  // one of two rows at most
  EXPECT_THAT(RecipeTable(choices).status(), IsOk());
  EXPECT_THAT(FasterTable(choices).status(), IsOk());
}

TEST_F(RecipeSearchTest, SaysInWhatARecipeLoses) {
  const std::vector<RecipeChoice> choices = ChoicesOf({Row("mbridge", 8, 2)});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].component, "compute");  // products of an eighth of so narrow a model
  EXPECT_GT(choices[0].lost_seconds, 0);
  EXPECT_LT(choices[0].lost_seconds, choices[0].recipes[0].seconds);
}

// A sweep's rows are of bad layouts on purpose.
TEST_F(RecipeSearchTest, OfASweepTheBestLayoutCounts) {
  const std::vector<RecipeChoice> choices =
      ChoicesOf({Row("nanotron", 8, 2), Row("nanotron", 2, 1), Row("mbridge", 2, 1)});
  ASSERT_EQ(choices.size(), 2u);
  ASSERT_EQ(choices[1].recipes.size(), 1u);
  EXPECT_EQ(choices[1].recipes[0].id, "nanotron-t2p1");
  const Claim claim = RecipeClaim(choices);
  EXPECT_THAT(claim.ours, testing::HasSubstr("of 1 rows; of nanotron's sweep the best layout of "));
  EXPECT_THAT(claim.ours, testing::HasSubstr(" of 1 requests"));
}

TEST_F(RecipeSearchTest, VariesWhatTheSystemCan) {
  ModernRow row = Row("foundry", 1, 1);
  row.sharding = "FULL_SHARD";
  for (const RecipeChoice& choice : ChoicesOf({row})) {
    EXPECT_EQ(choice.best.pipeline, 1);
    EXPECT_EQ(choice.best.tensor, 1);
    EXPECT_TRUE(ShardsGradients(choice.best.sharding));
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(row, models_, machines_));
  EXPECT_EQ(RequestOf(row, step).max_context, 1);
  EXPECT_EQ(RequestOf(Row("dgxc", 1, 1), step).max_context, 8);
  EXPECT_EQ(RequestOf(Row("nanotron", 1, 1), step).methods.size(), 2u);
}

TEST(RecipeSearch, WithoutRowsNoClaimIsMade) {
  EXPECT_EQ(RecipeClaim({}).state, ClaimState::kNotMade);
}

}  // namespace
}  // namespace pipelab
