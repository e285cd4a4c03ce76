#include "experiments/inference/int4_law.h"

#include <vector>

#include "experiments/inference/int4_times.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/operation.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// 32 / 4.125 bits at small batches, and 1 where products bound both.
TEST(Int4Law, IsBytesAndThenFlops) {
  const Operation whole = MatmulOperation(1, 4096, 8192),
                  packed = Int4MatmulOperation(1, 4096, 8192, 128);
  EXPECT_EQ(packed.flops, whole.flops);
  EXPECT_EQ(packed.numbers, 4096 + 8192);
  EXPECT_EQ(packed.packed.value() * 8, 4096 * 8192 * 4.125);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Int4Charts charts, PublishedInt4Charts());
  EXPECT_NEAR(charts.batches.front().law, 16 / 4.125, 0.01);
  for (size_t i = 1; i < charts.batches.size(); ++i) {
    EXPECT_LE(charts.batches[i].law, charts.batches[i - 1].law + 0.01);
  }
  for (const Int4ModelRow& row : charts.models) EXPECT_LT(row.law_a100, row.law_a10) << row.model;
}

// Shares of the peak double with the batch while bytes bound it, and then stay.
TEST(Int4Law, CurvesAreARoofline) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Int4Charts charts, PublishedInt4Charts());
  const Int4Curves curves = Int4LawCurves(charts);
  const std::vector<double>& law = curves.shares[0].values;
  EXPECT_NEAR(law[1], 2 * law[0], 0.01 * law[0]);
  EXPECT_NEAR(law.back(), 100, 1e-3);
  EXPECT_NEAR(curves.shares[1].values.back(), 100 * 1.55 / charts.batches.back().law, 0.01);
  EXPECT_EQ(curves.speed_ups[1].values.front(), 3.87);
}

TEST(Int4Law, TablesAndClaimsHoldTogether) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Int4Charts charts, PublishedInt4Charts());
  for (const Table& t : Int4LawTables(charts)) EXPECT_THAT(t.status(), IsOk());
  for (const Claim& c : Int4LawClaims(charts)) {
    EXPECT_THAT(CheckClaim(c), IsOk());
    EXPECT_EQ(c.state, ClaimState::kMet) << c.id << ": " << c.ErrorText();
  }
}

TEST(Int4Times, AMeasurementMakesItsClaims) {
  const Int4Shape shape{512, 320, 128};
  const std::vector<Int4Time> times = MeasureInt4(shape, {1, 4, 128});
  EXPECT_THAT(Int4TimeTable(shape, times).status(), IsOk());
  const std::vector<Claim> claims = Int4TimeClaims(times, times.empty() ? "no AVX-512" : "");
  EXPECT_EQ(claims.size(), 4u);
  for (const Claim& c : claims) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
  for (const Int4Time& t : times) {
    EXPECT_GT(t.seconds, 0);
    EXPECT_GT(t.limit_seconds(), 0);
    EXPECT_GT(t.share(), 0);
  }
}

}  // namespace
}  // namespace pipelab
