#include "experiments/modern/golden_rows.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kGoldenHeader[] = "case,platform,cluster,gpus,step_s,peak_bytes,options\n";

TEST(GoldenRows, TheProjectsOwnArePredicted) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<GoldenRow> rows, ReadGoldenRows());
  ASSERT_EQ(rows.size(), 6u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RowStep> steps, PredictGolden(rows));
  for (const RowStep& s : steps) {
    EXPECT_LT(s.seconds, 1.01 * s.measured) << s.name;  // what is not priced takes time
    EXPECT_NEAR(s.memory_error(), 0, 0.03) << s.name;
  }
  EXPECT_THAT(GoldenTable(steps).status(), IsOk());
  EXPECT_THAT(CheckClaim(GoldenClaim(steps)), IsOk());
  EXPECT_EQ(GoldenClaim({}).state, ClaimState::kNotMade);
}

TEST(GoldenRows, AllReducesAreRingsAndOutputsAreFilled) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<GoldenRow> rows, ReadGoldenRows());
  GoldenRow row = rows[3];
  ASSERT_EQ(row.name, "gpt3_7b_tp4_pp1_memory_speed dgx_h100");
  const std::string option = " --deterministic-mode";
  row.options.erase(row.options.find(option), option.size());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RowStep> steps, PredictGolden({rows[3], row}));
  EXPECT_GT(steps[0].seconds, 1.03 * steps[1].seconds);
  EXPECT_EQ(steps[0].gib, steps[1].gib);
  // On Blackwell attention is another kernel's.
  row = rows[5];
  ASSERT_EQ(row.name, "gpt3_7b_tp4_pp1_memory_speed dgx_gb200");
  row.options.erase(row.options.find(option), option.size());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RowStep> newer, PredictGolden({rows[5], row}));
  EXPECT_GT(newer[0].seconds, 1.2 * newer[1].seconds);
}

TEST(GoldenRows, ErrorsNameTheLineAndTheColumn) {
  const auto message = [](const std::string& row) {
    return std::string(
        ParseGoldenRows(absl::StrCat(kGoldenHeader, row), "g.csv").status().message());
  };
  EXPECT_EQ(message("a,b,dgx-h100,0,1,1,--bf16\n"),
            "g.csv: line 2: gpus: \"0\": must be from 1 to 1048576");
  EXPECT_EQ(message("a,b,dgx-h100,8,-1,1,--bf16\n"),
            "g.csv: line 2: step_s: \"-1\": must be a number above 0");
  EXPECT_EQ(message("a,b,dgx-h100,8,1,x,--bf16\n"),
            "g.csv: line 2: peak_bytes: \"x\": must be a number above 0");
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::vector<GoldenRow> rows,
      ParseGoldenRows(absl::StrCat(kGoldenHeader, "a,b,dgx-h100,8,1,1,--num-layers x\n"), "g.csv"));
  EXPECT_EQ(PredictGolden(rows).status().message().substr(0, 4), "a b:");
}

}  // namespace
}  // namespace pipelab
