#include "experiments/validation/fit_cluster.h"

#include <string>
#include <vector>

#include "experiments/predict/predict_fixture.h"
#include "experiments/predict/predict_rows.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(RampCurve, TakesTheRampBesideTheWork) {
  const double peak = 1e14, ramp = 1e-5, highest = 0.8;
  const EfficiencyCurve curve = RampCurve(highest, ramp, peak);
  ASSERT_THAT(CheckCurve(curve), IsOk());
  for (double work = 1e8; work < 1e12; work *= 1.3) {
    const double time = work / (peak * curve.At(work));
    const double expected = (work / peak + ramp) / highest;
    EXPECT_NEAR(time / expected, 1, 0.02) << work;
  }
  EXPECT_DOUBLE_EQ(curve.At(ramp * peak), highest / 2);
}

// Rows whose times a known specification made.
MeasuredRows RowsOnCluster(const ClusterSpec& cluster) {
  MeasuredRows rows;
  for (const int64_t tensor : {1, 2, 4}) {
    for (const int64_t micro_batch : {1, 4, 8}) {
      for (const int64_t hidden : {512, 2048}) {
        MeasuredRow r;
        r.gpus = r.tensor = tensor;
        r.data = r.pipeline = 1;
        r.micro_batch = micro_batch;
        r.batch = 2 * micro_batch;
        r.hidden = hidden;
        r.heads = 8;
        r.layers = 4;
        r.tokens = 1024;
        rows.rows.push_back(r);
      }
    }
  }
  const std::vector<double> ms = PredictRows(rows, cluster, "rows").value();
  for (size_t i = 0; i < ms.size(); ++i) rows.rows[i].milliseconds = ms[i];
  return rows;
}

// The fit comes near the specification that made the rows, also on those that it does not see.
TEST(FitCluster, ComesNearWhatMadeTheRows) {
  ClusterSpec truth = Dgx();
  truth.device.host_launch = {Microseconds(25), "test"};
  truth.device.arithmetic[OperationKind::kMatmul] = {RampCurve(0.65, 20e-6, 312e12), "test"};
  const MeasuredRows rows = RowsOnCluster(truth);
  FitOptions options;
  options.steps = 1000;
  options.source = "made rows";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FittedCluster fitted, FitCluster(Dgx(), rows, options));
  EXPECT_LT(fitted.error, 0.5 * fitted.first_error);
  EXPECT_LT(fitted.error, 0.06);
  EXPECT_EQ(fitted.cluster.device.host_launch->source, "made rows");
  EXPECT_EQ(fitted.cluster.levels[0].rings[0].connection.bandwidth.source, "made rows");
  EXPECT_LE(fitted.cluster.levels[0].rings[0].connection.bandwidth.value.value(),
            fitted.cluster.levels[0].connection.bandwidth.value.value());
  ASSERT_THAT(CheckCluster(fitted.cluster), IsOk());
  const std::vector<double> predicted = PredictRows(rows, fitted.cluster, "rows").value();
  EXPECT_LT(Summarise(ErrorsOf(rows, predicted)).mean, 0.12);  // two thirds were not fitted
}

TEST(FitCluster, IsDeterministicAndReadBack) {
  const MeasuredRows rows = RowsOnCluster(Dgx());
  FitOptions options;
  options.steps = 5;
  options.source = "test";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FittedCluster a, FitCluster(Dgx(), rows, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FittedCluster b, FitCluster(Dgx(), rows, options));
  const std::string text = ClusterToJson(a.cluster);
  EXPECT_EQ(text, ClusterToJson(b.cluster));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec read, ParseCluster(text, "fitted"));
  EXPECT_EQ(PredictRows(rows, read, "rows").value(), PredictRows(rows, a.cluster, "rows").value());
}

TEST(FitCluster, NeedsMeasuredRows) {
  MeasuredRows rows = RowsOnCluster(Dgx());
  for (MeasuredRow& r : rows.rows) r.milliseconds.reset();
  EXPECT_EQ(FitCluster(Dgx(), rows, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pipelab
