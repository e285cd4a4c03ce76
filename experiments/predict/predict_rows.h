// Measured rows (measured_rows.h) on a cluster's specification: predicted beside measured.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<double> ms, PredictRows(rows, cluster, "--rows=a.csv"));
//   std::vector<RowError> all = ErrorsOf(rows, ms);
//   ErrorSummary s = Summarise(all);   s.mean;  s.median;
//   RankingSummary r = RankPairs(all);
#ifndef PIPELAB_EXPERIMENTS_PREDICT_PREDICT_ROWS_H_
#define PIPELAB_EXPERIMENTS_PREDICT_PREDICT_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/predict/error_summary.h"  // IWYU pragma: export
#include "experiments/predict/gpt_run.h"
#include "experiments/predict/measured_rows.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct RowPrediction {
  double milliseconds = 0;  // of an iteration
  Bytes memory;             // of the fullest device
  Bytes device_memory;
  // The rate of a GPU, by what attention counts (gpt_run.h).
  double tflops_all_pairs = 0, tflops_causal = 0;
};

// [row] The error names file, line and reason: FailedPrecondition for a row that the cluster or its
// scheme cannot run. What does not fit is predicted all the same.
absl::StatusOr<std::vector<RowPrediction>> PredictEachRow(const MeasuredRows& rows,
                                                          const ClusterSpec& cluster,
                                                          absl::string_view what,
                                                          int64_t vocabulary = kGpt2Vocabulary);
// [row] Milliseconds alone.
absl::StatusOr<std::vector<double>> PredictRows(const MeasuredRows& rows,
                                                const ClusterSpec& cluster, absl::string_view what,
                                                int64_t vocabulary = kGpt2Vocabulary);

struct RowError {
  const MeasuredRow* row = nullptr;  // measured
  double predicted = 0;              // ms

  double error() const { return predicted / *row->milliseconds - 1; }  // above 0: too slow
};

// The errors of the measured rows.
std::vector<RowError> ErrorsOf(const MeasuredRows& rows, const std::vector<double>& predicted);

// [row] The predictions, times the median of measured / predicted over the known rows of the same
// pass: hidden size, heads, tokens, T and micro-batch size. Those of other passes stay as they are.
std::vector<double> CorrectedByKnownPasses(const MeasuredRows& rows,
                                           const std::vector<double>& predicted,
                                           const std::vector<RowError>& known);

// As error_summary.h has them. Alike are configurations of one model that train with the same batch
// on equally many GPUs.
std::vector<TimedPrediction> TimedOf(const std::vector<RowError>& errors);
inline ErrorSummary Summarise(const std::vector<RowError>& errors) {
  return Summarise(TimedOf(errors));
}
inline RankingSummary RankPairs(const std::vector<RowError>& errors) {
  return RankPairs(TimedOf(errors));
}

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_PREDICT_ROWS_H_
