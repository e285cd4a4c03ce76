#include "experiments/token_slices/slice_gains.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

TEST(SliceGainsTest, FewSamplesAndManyStagesGainMost) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TeraPipePaper paper, PublishedTeraPipe());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", paper.cluster));
  std::vector<SliceGain> gains;
  for (const int row : {0, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(SliceGain gain,
                                 GainOfSlices(paper.rows[row], cluster, {/*token_step=*/256}));
    EXPECT_GE(gain.gain(), 1);
    EXPECT_GE(gain.sum_seconds, 0);
    EXPECT_EQ(gain.sum_seconds > 0, paper.rows[row].data > 1);
    gains.push_back(gain);
  }
  EXPECT_GT(gains[1].gain(), 2 * gains[0].gain());  // two samples through 96 stages
  EXPECT_THAT(SliceTable(gains).status(), IsOk());
  for (const Claim& c : SliceClaims(gains)) EXPECT_THAT(CheckClaim(c), IsOk());
}

TEST(SliceGainsTest, PaperIsRefusedByPlaceAndReason) {
  const auto message = [](const std::string& row) {
    return std::string(
        ParseTeraPipePaper(R"({"paper": "p", "cluster": "c", "rows": [)" + row + "]}", "f.json")
            .status()
            .message());
  };
  EXPECT_THAT(message(R"({"row": 1, "model": "m", "gpus": 8, "batch": 2, "data": 1, "pipeline": 2,
                          "tensor": 2, "gain": 5, "tag": "read"})"),
              HasSubstr("f.json: rows[0].gpus: must be data x pipeline x tensor"));
  EXPECT_THAT(message(R"({"row": 1, "model": "m", "gpus": 8, "batch": 3, "data": 2, "pipeline": 2,
                          "tensor": 2, "gain": 5, "tag": "read"})"),
              HasSubstr("rows[0].batch: must be a multiple of data"));
}

}  // namespace
}  // namespace pipelab
