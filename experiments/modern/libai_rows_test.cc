#include "experiments/modern/libai_rows.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kLibaiHeader[] = "gpus,D,T,P,micro_batch,global_batch,recompute,samples_per_s\n";

TEST(LibaiRows, OneGpuCalibratesTheOthers) {
  const std::string text = std::string(kLibaiHeader) +
                           "1,1,1,1,2,2,none,8\n"
                           "16,16,1,1,2,32,none,100\n"
                           "8,1,8,1,2,2,none,20\n"
                           "4,1,1,4,2,16,blocks,20\n";
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MeasuredRow> rows, ParseLibaiRows(text, "l.csv"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_DOUBLE_EQ(*rows[1].milliseconds, 320);
  EXPECT_EQ(rows[3].recompute, Recompute::kBlocks);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LibaiSteps all, PredictLibai(rows));
  ASSERT_EQ(all.steps.size(), 3u);
  // The network is not known, and counts between nodes alone.
  EXPECT_LT(all.steps[0].least, all.steps[0].seconds);
  EXPECT_LT(all.steps[0].seconds, all.steps[0].most);
  EXPECT_DOUBLE_EQ(all.steps[1].least, all.steps[1].most);
  EXPECT_THAT(LibaiTable(all.steps).status(), IsOk());
  EXPECT_THAT(CheckClaim(LibaiClaim(all.steps)), IsOk());
  EXPECT_EQ(LibaiClaim({}).state, ClaimState::kNotMade);
  // A machine that is measured to be half as fast is, and so are the steps.
  *rows[0].milliseconds *= 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LibaiSteps slow, PredictLibai(rows));
  EXPECT_LT(slow.factor, 0.6 * all.factor);
  EXPECT_GT(slow.steps[2].seconds, 1.7 * all.steps[2].seconds);
  rows.erase(rows.begin());
  EXPECT_EQ(PredictLibai(rows).status().message(),
            "one row must have one GPU, to calibrate the machine by");
}

TEST(LibaiRows, ErrorsNameTheLineAndTheColumn) {
  const auto message = [](const std::string& text) {
    return std::string(ParseLibaiRows(text, "l.csv").status().message());
  };
  const std::string header = kLibaiHeader;
  EXPECT_EQ(message(header + "1,1,1,1,2,2,none,-8\n"),
            "l.csv: line 2: samples_per_s: \"-8\": must be a number above 0");
  EXPECT_NE(message(header + "1,1,1,1,2,x,none,8\n").find("l.csv: line 2: global batch: \"x\""),
            std::string::npos)
      << message(header + "1,1,1,1,2,x,none,8\n");
  EXPECT_NE(message(header + "1,1,1,1,2,2,all,8\n").find("l.csv: line 2: recompute: \"all\""),
            std::string::npos)
      << message(header + "1,1,1,1,2,2,all,8\n");
  EXPECT_NE(message("gpus,D,T,P\n1,1,1,1\n").find("micro_batch"), std::string::npos);
}

TEST(LibaiRows, MeasuredOnesArePredicted) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  const std::string path = JoinPath(folder, "libai_v100_rows.csv");
  if (!PathExists(path)) GTEST_SKIP() << path << " is not there";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MeasuredRow> rows, ParseLibaiRows(text, path));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LibaiSteps all, PredictLibai(rows));
  EXPECT_EQ(all.steps.size(), rows.size() - 1);
  EXPECT_EQ(LibaiClaim(all.steps).state, ClaimState::kMet);
}

}  // namespace
}  // namespace pipelab
