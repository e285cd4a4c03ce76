#include "experiments/inference/serving_study.h"

#include <vector>

#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// A small model's study has all rows, tables that hold together, and caches to the byte.
TEST(ServingStudy, OfASmallModel) {
  ServingSize size;
  size.model = "llama-2-7b";
  size.prompt = 32;
  size.output = 16;
  size.requests = 48;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ServingStudy study, SimulateServing(size));
  for (const Table& table : ServingTables(study)) {
    EXPECT_THAT(table.status(), IsOk()) << table.id();
    EXPECT_FALSE(table.rows().empty()) << table.id();
  }
  for (const Claim& claim : ServingClaims(study)) EXPECT_THAT(CheckClaim(claim), IsOk());
  // With one device all blocks are in one stage: 32 of 2 x 4096 numbers for 96 tokens of 8 slots.
  EXPECT_EQ(study.use[0].caches.value(), int64_t{32} * 2 * 4096 * 2 * 96 * 8);
  for (const ServingRow& row : study.use) {
    EXPECT_GT(row.figures.device_use, 0) << row.devices << " " << row.groups;
    // Stages without enough groups stand still.
    if (row.groups < row.devices) {
      EXPECT_LT(row.figures.device_use, 1.02 * row.groups / row.devices);
    }
  }
  EXPECT_FALSE(SimulateServing({"no-such-model"}).ok());
}

}  // namespace
}  // namespace pipelab
