#include "experiments/predict/measured_rows.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kHeader[] =
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,"
    "tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)";

MeasuredRows Parse(const std::string& text) {
  auto rows = ParseMeasuredRows(text, "a.csv");
  EXPECT_THAT(rows, IsOk());
  return *std::move(rows);
}

std::string ErrorOf(const std::string& row) {
  const auto rows = ParseMeasuredRows(absl::StrCat(kHeader, "\n", row, "\n"), "a.csv");
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << row;
  return std::string(rows.status().message());
}

TEST(MeasuredRows, AreRead) {
  const MeasuredRows rows = Parse(
      absl::StrCat(kHeader, "\n8,64,4,1024,16,24,1024,2,2,2,372.25\n\n4,4,1,512,8,2,128,1,4,1,\n"));
  ASSERT_EQ(rows.rows.size(), 2);
  const MeasuredRow& r = rows.rows[0];
  EXPECT_EQ(r.line, 2);
  EXPECT_EQ(r.gpus, 8);
  EXPECT_EQ(r.batch, 64);
  EXPECT_EQ(r.micro_batch, 4);
  EXPECT_EQ(r.hidden, 1024);
  EXPECT_EQ(r.heads, 16);
  EXPECT_EQ(r.layers, 24);
  EXPECT_EQ(r.tokens, 1024);
  EXPECT_EQ(r.tensor, 2);
  EXPECT_EQ(r.data, 2);
  EXPECT_EQ(r.pipeline, 2);
  EXPECT_EQ(r.milliseconds, 372.25);
  EXPECT_EQ(r.micro_batches(), 8);
  EXPECT_EQ(rows.rows[1].line, 4);
  EXPECT_EQ(rows.rows[1].milliseconds, absl::nullopt);
}

TEST(MeasuredRows, AColumnOfParametersMayStandInFront) {
  for (const char* title : {"# parameters", "Parameters (B)", "params"}) {
    const MeasuredRows rows =
        Parse(absl::StrCat(title, ",", kHeader, "\r\n1.3B,1,2,1,1024,16,24,1024,1,1,1,5\r\n"));
    ASSERT_EQ(rows.rows.size(), 1);
    EXPECT_EQ(rows.rows[0].gpus, 1);
    EXPECT_EQ(rows.rows[0].milliseconds, 5);
    EXPECT_EQ(rows.rows[0].text, "1.3B,1,2,1,1024,16,24,1024,1,1,1,5");
  }
}

TEST(MeasuredRows, FurtherColumnsInAnyOrder) {
  const std::string header =
      absl::StrCat(kHeader, ",scheme,recompute,vocabulary,sharding,virtual_stages");
  const std::string sizes = "8,64,4,1024,16,24,1024,2,2,2,";
  const MeasuredRows rows = Parse(absl::StrCat(
      header, "\n", sizes, ",zbv,selective,51200,optimizer,2\n", sizes, "5,,,,none,\n"));
  ASSERT_EQ(rows.rows.size(), 2);
  const MeasuredRow& r = rows.rows[0];
  EXPECT_EQ(r.scheme, "zbv");
  EXPECT_EQ(r.recompute, Recompute::kSelective);
  EXPECT_EQ(r.vocabulary, 51200);
  EXPECT_EQ(r.sharding, Sharding::kOptimizer);
  EXPECT_EQ(r.virtual_stages, 2);
  EXPECT_EQ(r.milliseconds, absl::nullopt);
  EXPECT_EQ(rows.rows[1].recompute, Recompute::kNone);
  EXPECT_EQ(rows.rows[1].sharding, Sharding::kReplicated);
  EXPECT_EQ(rows.rows[1].milliseconds, 5);

  const auto message = [&](const std::string& titles, const std::string& cells) {
    const auto refused =
        ParseMeasuredRows(absl::StrCat(kHeader, ",", titles, "\n", sizes, ",", cells), "a.csv");
    return std::string(refused.status().message());
  };
  EXPECT_THAT(message("recompute", "some"), testing::HasSubstr("line 2: recompute: \"some\": "));
  EXPECT_EQ(message("vocabulary", "0"),
            "a.csv: line 2: vocabulary: \"0\": must be a whole number from 1 to 16777216");
  EXPECT_THAT(message("sharding", "zero9"), testing::HasSubstr("line 2: sharding: \"zero9\": "));
  EXPECT_EQ(message("scheme,scheme", "gpipe,gpipe"),
            "a.csv: line 1: header: \"scheme\": is there twice");
  EXPECT_EQ(message("colour", "red"),
            "a.csv: line 1: header: \"colour\": unknown; after iteration time (ms) may follow "
            "recompute, attention, virtual_stages, scheme, sharding, vocabulary");
}

TEST(MeasuredRows, AColumnIsAddedToTheTextAsItStands) {
  const std::string first = "1,2,1,1024,16,24,1024,1,1,1, 5.0 ",
                    second = "1,4,1,1024,16,24,1024,1,1,1,";
  const MeasuredRows rows = Parse(absl::StrCat(kHeader, "\n", first, "\n", second));
  EXPECT_EQ(WithColumns(rows, {"predicted_ms", "fits"}, {{"6.5", "yes"}, {"7", "no"}}),
            absl::StrCat(kHeader, ",predicted_ms,fits\n", first, ",6.5,yes\n", second, ",7,no\n"));
}

TEST(MeasuredRows, ErrorsNameFileLineColumnAndReason) {
  EXPECT_EQ(ErrorOf("8,64,4,1024,16,24,1024,2,2,372"),
            "a.csv: line 2: columns: 10; the header has 11");
  EXPECT_EQ(ErrorOf("x,64,4,1024,16,24,1024,2,2,2,372"),
            "a.csv: line 2: # GPUs: \"x\": must be a whole number from 1 to 1048576");
  EXPECT_EQ(ErrorOf("8,64,4.5,1024,16,24,1024,2,2,2,372"),
            "a.csv: line 2: micro batch: \"4.5\": must be a whole number from 1 to 16777216");
  EXPECT_EQ(ErrorOf("8,64,4,0,16,24,1024,2,2,2,372"),
            "a.csv: line 2: hidden size: \"0\": must be a whole number from 1 to 16777216");
  EXPECT_EQ(ErrorOf("8,64,4,1024,16,24,1024,-2,2,2,372"),
            "a.csv: line 2: tensor parallelism: \"-2\": must be a whole number from 1 to 1048576");
  EXPECT_EQ(
      ErrorOf("8,99999999999999999999,4,1024,16,24,1024,2,2,2,372"),
      "a.csv: line 2: global batch: \"99999999999999999999\": must be a whole number from 1 to "
      "16777216");
  for (const char* time : {"slow", "0", "-1", "nan", "inf", "1e999"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat("8,64,4,1024,16,24,1024,2,2,2,", time)),
              absl::StrCat("a.csv: line 2: iteration time (ms): \"", time,
                           "\": must be a number above 0, or empty where nothing was measured"));
  }
  EXPECT_EQ(ErrorOf("4,64,4,1024,16,24,1024,2,2,2,372"),
            "a.csv: line 2: # GPUs: 4 is not tensor x data x pipeline parallelism, 2 x 2 x 2");
  EXPECT_EQ(ErrorOf("8,63,4,1024,16,24,1024,2,2,2,372"),
            "a.csv: line 2: data parallelism: 2 does not divide the global batch, 63");
  EXPECT_EQ(ErrorOf("8,64,3,1024,16,24,1024,2,2,2,372"),
            "a.csv: line 2: micro batch: 3 does not divide the batch of one of the data-parallel "
            "groups, 32");
  EXPECT_EQ(ErrorOf("8,64,4,1000,16,24,1024,2,2,2,372"),
            "a.csv: line 2: attention heads: 16 does not divide the hidden size, 1000");
  EXPECT_EQ(ErrorOf("12,64,4,1024,16,24,1024,3,2,2,372"),
            "a.csv: line 2: tensor parallelism: 3 does not divide the attention heads, 16");
  EXPECT_EQ(ErrorOf("8,64,4,1024,16,25,1024,2,2,2,372"),
            "a.csv: line 2: pipeline parallelism: 2 does not divide the layers, 25");
}

TEST(MeasuredRows, FilesWithoutHeaderOrRows) {
  const auto message = [](const std::string& text) {
    return std::string(ParseMeasuredRows(text, "a.csv").status().message());
  };
  EXPECT_EQ(message(""),
            absl::StrCat("a.csv: has no header and no row; must begin with \"", kHeader, "\""));
  EXPECT_EQ(message(absl::StrCat(kHeader, "\n\n")),
            absl::StrCat("a.csv: has no row; must begin with \"", kHeader, "\""));
  EXPECT_EQ(message("\n1,2,3\n"), absl::StrCat("a.csv: line 2: header: must be \"", kHeader,
                                               "\"; a column of parameters may stand in front"));
  EXPECT_THAT(message(absl::StrCat("colour,", kHeader, "\n")),
              testing::HasSubstr("line 1: header"));
  EXPECT_THAT(message(absl::StrCat(kHeader, ",predicted_ms\n")),
              testing::HasSubstr("line 1: header"));
}

}  // namespace
}  // namespace pipelab
