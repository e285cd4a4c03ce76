#include "experiments/validation/cross_validation.h"

#include <cmath>
#include <vector>

#include "experiments/predict/predict_fixture.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

MeasuredRow RowOfHidden(int64_t pipeline, int64_t hidden, int64_t micro_batch) {
  MeasuredRow r;
  r.gpus = r.pipeline = pipeline;
  r.tensor = r.data = 1;
  r.micro_batch = micro_batch;
  r.batch = 4 * micro_batch;
  r.hidden = hidden;
  r.heads = 8;
  r.layers = 4;
  r.tokens = 512;
  return r;
}

// Rows whose times the cost model made.
MeasuredRows RowsByHidden() {
  MeasuredRows rows;
  for (const int64_t pipeline : {1, 2, 4}) {
    for (const int64_t hidden : {512, 1024}) {
      for (const int64_t micro_batch : {2, 8}) {
        rows.rows.push_back(RowOfHidden(pipeline, hidden, micro_batch));
      }
    }
  }
  const std::vector<double> ms = PredictRows(rows, Dgx(), "rows").value();
  for (size_t i = 0; i < ms.size(); ++i) rows.rows[i].milliseconds = ms[i];
  return rows;
}

FitOptions Quick() {
  FitOptions options;
  options.steps = 100;
  options.every = 1;
  return options;
}

TEST(CrossValidate, LeavesOutEveryValueOfWhatVaries) {
  MeasuredRows rows = RowsByHidden();
  rows.rows.push_back(RowOfHidden(1, 512, 4));  // not measured
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<Split> splits,
                               CrossValidate(Dgx(), rows, Quick()));
  ASSERT_EQ(splits.size(), 7);  // T is 1 in all rows
  for (const Split& s : splits) EXPECT_EQ(s.known + static_cast<int64_t>(s.ours.size()), 12);
  EXPECT_EQ(splits[0].size, "hidden size");
  EXPECT_EQ(splits[0].value, 512);
  for (const RowError& e : splits[0].ours) EXPECT_EQ(e.row->hidden, 512);
  // What a split predicts does not look at its own rows: with other times it is the same.
  MeasuredRows slower = rows;
  for (MeasuredRow& r : slower.rows) {
    if (r.hidden == 512 && r.milliseconds.has_value()) *r.milliseconds *= 3;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<Split> again,
                               CrossValidate(Dgx(), slower, Quick()));
  for (size_t i = 0; i < splits[0].ours.size(); ++i) {
    EXPECT_EQ(splits[0].ours[i].predicted, again[0].ours[i].predicted);
  }
  EXPECT_THAT(SplitTable(splits).status(), IsOk());
  for (const Claim& c : SplitClaims(splits)) EXPECT_THAT(CheckClaim(c), IsOk());
}

// One pass takes longer than sizes explain. Only where the pipeline is left out do other rows have
// it, too.
TEST(CrossValidate, CorrectsPassesThatAreKnown) {
  MeasuredRows rows = RowsByHidden();
  for (MeasuredRow& r : rows.rows) {
    if (r.hidden == 512 && r.micro_batch == 8) *r.milliseconds *= 1.5;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<Split> splits,
                               CrossValidate(Dgx(), rows, Quick()));
  for (const Split& s : splits) {
    const double as_it_is = Summarise(s.ours).mean, corrected = Summarise(s.corrected).mean;
    if (s.size == "pipeline parallelism") {
      EXPECT_LT(corrected, as_it_is);
    } else {
      EXPECT_EQ(corrected, as_it_is);
    }
  }
}

TEST(CrossValidate, NeedsTwoValues) {
  MeasuredRows rows;
  rows.rows = {RowOfHidden(1, 512, 2)};
  rows.rows[0].milliseconds = 5;
  EXPECT_EQ(CrossValidate(Dgx(), rows, Quick()).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const Claim& c : SplitClaims({})) {
    EXPECT_EQ(c.state, ClaimState::kNotMade);
    EXPECT_THAT(CheckClaim(c), IsOk());
  }
}

// Twice the micro-batches at the same rate: twice the work, and less of it to fill the pipeline.
TEST(LookupTable, RepeatsTheNearestRate) {
  MeasuredRow known = RowOfHidden(2, 1024, 2), other = RowOfHidden(2, 1024, 8);
  known.milliseconds = 100;
  other.milliseconds = 150;
  MeasuredRow asked = known;
  asked.batch *= 2;
  for (const LookupRule rule : {LookupRule::kNearest, LookupRule::kPasses}) {
    const LookupTable table({known, other}, rule);
    EXPECT_DOUBLE_EQ(table.Milliseconds(known), 100);
    EXPECT_NEAR(table.Milliseconds(asked), 100.0 * (8 + 1) / (4 + 1), 1e-9);
  }
}

// Times that are a power of a size are found again, outside of the known ones, too.
TEST(LookupTable, RegressionExtrapolates) {
  std::vector<MeasuredRow> known;
  for (const int64_t micro_batch : {1, 2, 4, 8}) {
    known.push_back(RowOfHidden(1, 1024, micro_batch));
    known.back().milliseconds = 10 * std::pow(static_cast<double>(micro_batch), 0.7);
  }
  const LookupTable table(known, LookupRule::kRegression);
  EXPECT_NEAR(table.Milliseconds(RowOfHidden(1, 1024, 32)), 10 * std::pow(32, 0.7), 0.1);
}

}  // namespace
}  // namespace pipelab
