// What the cost model claims: its errors on measured iterations that calibrated nothing, and on
// Megatron-LM's published rows, from one specification.
#include <cmath>
#include <string>
#include <vector>

#include "experiments/predict/measured_rows.h"
#include "experiments/predict/predict_fixture.h"
#include "experiments/predict/predict_rows.h"
#include "experiments/published/megatron.h"
#include "experiments/validation/cross_validation.h"
#include "experiments/validation/fit_cluster.h"
#include "experiments/validation/validation_tables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(Validation, MeasuredIterationsOnOneNode) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text,
                               ReadFile(folder + "/a100_gpt_iteration_times.csv"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MeasuredRows rows, ParseMeasuredRows(text, "measured"));
  EXPECT_EQ(rows.rows.size(), 708);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted,
                               PredictRows(rows, Dgx(), "measured"));
  const std::vector<RowError> errors = ErrorsOf(rows, predicted);
  const ErrorSummary summary = Summarise(errors);
  EXPECT_LE(summary.mean, 0.08);
  EXPECT_LE(summary.median, 0.05);
  const RankingSummary ranking = RankPairs(errors);
  EXPECT_GT(ranking.pairs, 500);
  EXPECT_GE(ranking.share(), 0.9);
  EXPECT_THAT(WorstRowsTable(errors, Dgx(), 5).status(), IsOk());
  EXPECT_THAT(ErrorTable(errors).status(), IsOk());
}

// Quicker than the study, whose figures are in docs/validation.md.
TEST(Validation, WholeValuesLeftOut) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text,
                               ReadFile(folder + "/a100_gpt_iteration_times.csv"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MeasuredRows rows, ParseMeasuredRows(text, "measured"));
  FitOptions options;
  options.steps = 15;
  options.every = 16;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<Split> splits,
                               CrossValidate(Dgx(), rows, options));
  EXPECT_EQ(splits.size(), 13);
  std::vector<RowError> all;
  for (const Split& s : splits) {
    all.insert(all.end(), s.ours.begin(), s.ours.end());
    EXPECT_LT(Summarise(s.corrected).mean, s.BestTable()) << s.size << " " << s.value;
  }
  EXPECT_EQ(all.size(), 4 * 708);
  EXPECT_LE(Summarise(all).mean, 0.15);
}

TEST(Validation, MegatronRows) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MegatronPaper paper, PublishedMegatron());
  ASSERT_EQ(paper.rows.size(), 5);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MegatronResult> results,
                               PredictMegatron(paper, Dgx()));
  double sum = 0;
  for (const MegatronResult& r : results) {
    EXPECT_LE(std::abs(r.error()), 0.1) << r.published.parameters;
    sum += std::abs(r.error());
  }
  EXPECT_LE(sum / 5, 0.05);
  EXPECT_THAT(MegatronTable(paper, results).status(), IsOk());
}

// The paper's own example: 1T parameters, 450B tokens: 84 days on 3,072 GPUs at 163 Tflop/s each,
// by 8 T P / (n X), which counts as its formula for an iteration does.
TEST(Validation, FlopsOfTheLargestRowAreEightATokenAndParameter) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MegatronPaper paper, PublishedMegatron());
  const PublishedMegatronRow& row = paper.rows.back();
  const double tokens = static_cast<double>(row.batch * paper.tokens);
  EXPECT_NEAR(paper.FlopsOf(row).value() / (8 * tokens * row.parameters), 1, 0.03);
}

TEST(PublishedMegatron, ErrorsNameFileAndKey) {
  const auto message = [](const std::string& row) {
    return std::string(
        ParseMegatronPaper(
            R"({"paper": "p", "cluster": "c", "tokens": 8, "vocabulary": 8, "rows": [)" + row +
                "]}",
            "m.json")
            .status()
            .message());
  };
  const std::string sizes =
      R"("parameters": 1, "heads": 1, "hidden": 1, "tflops": 1, "tag": "read", )";
  const auto row = [&](const std::string& rest) { return message("{" + sizes + rest + "}"); };
  EXPECT_EQ(row(R"("layers": 4, "tensor": 2, "pipeline": 2, "gpus": 8, "batch": 8, "micro_batch": 2,
                   "virtual_stages": 2)"),
            "");
  EXPECT_THAT(row(R"("layers": 4, "tensor": 2, "pipeline": 2, "gpus": 6, "batch": 8,
                     "micro_batch": 2, "virtual_stages": 2)"),
              testing::HasSubstr("gpus: must be a multiple of tensor x pipeline"));
  EXPECT_THAT(row(R"("layers": 4, "tensor": 2, "pipeline": 2, "gpus": 8, "batch": 6,
                     "micro_batch": 2, "virtual_stages": 2)"),
              testing::HasSubstr("batch: must be a multiple"));
  EXPECT_THAT(row(R"("layers": 5, "tensor": 2, "pipeline": 2, "gpus": 8, "batch": 8,
                     "micro_batch": 2, "virtual_stages": 2)"),
              testing::HasSubstr("layers: must be a multiple of pipeline x virtual_stages"));
  EXPECT_THAT(row(R"("layers": 4)"), testing::HasSubstr("tensor: missing"));
}

}  // namespace
}  // namespace pipelab
