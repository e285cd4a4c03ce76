#include "experiments/predict/predict_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

double MedianRatio(std::vector<double> ascending) {
  std::sort(ascending.begin(), ascending.end());
  const size_t n = ascending.size();
  return (ascending[(n - 1) / 2] + ascending[n / 2]) / 2;
}

}  // namespace

absl::StatusOr<std::vector<RowPrediction>> PredictEachRow(const MeasuredRows& rows,
                                                          const ClusterSpec& cluster,
                                                          absl::string_view what,
                                                          int64_t vocabulary) {
  std::vector<RowPrediction> predicted;
  for (const MeasuredRow& row : rows.rows) {
    const GptRun run = RunOfRow(row, vocabulary);
    const absl::StatusOr<StepPrediction> p = SimulateRun(run, cluster);
    if (!p.ok()) {
      return FaultOfFile(absl::Status(
          p.status().code(), absl::StrCat(what, ": line ", row.line, ": ", p.status().message())));
    }
    const double gpu_teraseconds = ToSeconds(p->step_time) * static_cast<double>(row.gpus) * 1e12;
    predicted.push_back({ToMilliseconds(p->step_time), p->largest_device, p->step.device_memory,
                         ModelFlops(run, AttentionFlops::kAllPairs).value() / gpu_teraseconds,
                         ModelFlops(run, AttentionFlops::kCausal).value() / gpu_teraseconds});
  }
  return predicted;
}

absl::StatusOr<std::vector<double>> PredictRows(const MeasuredRows& rows,
                                                const ClusterSpec& cluster, absl::string_view what,
                                                int64_t vocabulary) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<RowPrediction> predicted,
                           PredictEachRow(rows, cluster, what, vocabulary));
  std::vector<double> milliseconds;
  for (const RowPrediction& p : predicted) milliseconds.push_back(p.milliseconds);
  return milliseconds;
}

std::vector<RowError> ErrorsOf(const MeasuredRows& rows, const std::vector<double>& predicted) {
  CHECK_EQ(rows.rows.size(), predicted.size());
  std::vector<RowError> errors;
  for (size_t i = 0; i < predicted.size(); ++i) {
    if (rows.rows[i].milliseconds.has_value()) errors.push_back({&rows.rows[i], predicted[i]});
  }
  return errors;
}

std::vector<double> CorrectedByKnownPasses(const MeasuredRows& rows,
                                           const std::vector<double>& predicted,
                                           const std::vector<RowError>& known) {
  const auto pass_of = [](const MeasuredRow& r) {
    return std::make_tuple(r.hidden, r.heads, r.tokens, r.tensor, r.micro_batch);
  };
  std::map<decltype(pass_of(rows.rows[0])), std::vector<double>> ratios;
  for (const RowError& e : known) {
    ratios[pass_of(*e.row)].push_back(*e.row->milliseconds / e.predicted);
  }
  std::vector<double> corrected = predicted;
  for (size_t i = 0; i < corrected.size(); ++i) {
    const auto found = ratios.find(pass_of(rows.rows[i]));
    if (found != ratios.end()) corrected[i] *= MedianRatio(found->second);
  }
  return corrected;
}

std::vector<TimedPrediction> TimedOf(const std::vector<RowError>& errors) {
  std::vector<TimedPrediction> timed;
  for (const RowError& e : errors) {
    const MeasuredRow& r = *e.row;
    timed.push_back({absl::StrCat(r.gpus, "/", r.batch, "/", r.hidden, "/", r.heads, "/", r.layers,
                                  "/", r.tokens),
                     *r.milliseconds, e.predicted});
  }
  return timed;
}

}  // namespace pipelab
