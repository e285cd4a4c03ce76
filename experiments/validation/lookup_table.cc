#include "experiments/validation/lookup_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/predict/gpt_run.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

// Hidden size, micro-batch and T come first: those of a pass.
std::vector<double> LogSizes(const MeasuredRow& r) {
  std::vector<double> logs;
  for (const int64_t size :
       {r.hidden, r.micro_batch, r.tensor, r.pipeline, r.data, r.micro_batches(), r.layers}) {
    logs.push_back(std::log2(static_cast<double>(size)));
  }
  return logs;
}
constexpr size_t kSizesOfAPass = 3;

// The work of a GPU, with what it could have done while the pipeline fills and drains.
double Work(const MeasuredRow& r) {
  const double m = static_cast<double>(r.micro_batches());
  return ModelFlops(RunOfRow(r, kGpt2Vocabulary), AttentionFlops::kAllPairs).value() /
         static_cast<double>(r.gpus) * (m + static_cast<double>(r.pipeline) - 1) / m;
}

double Rate(const MeasuredRow& r) { return Work(r) / *r.milliseconds; }

double MedianRate(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// Least squares by the normal equations; a size that is the same in all rows gets no weight.
std::vector<double> Regression(const std::vector<std::vector<double>>& x,
                               const std::vector<double>& y) {
  const size_t n = x[0].size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (size_t row = 0; row < x.size(); ++row) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) a[i][j] += x[row][i] * x[row][j];
      a[i][n] += x[row][i] * y[row];
    }
  }
  for (size_t i = 0; i < n; ++i) a[i][i] += 1e-6;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  std::vector<double> weights(n);
  for (size_t i = 0; i < n; ++i) weights[i] = a[i][n] / a[i][i];
  return weights;
}

std::vector<double> WithOne(std::vector<double> logs) {
  logs.insert(logs.begin(), 1);
  return logs;
}

}  // namespace

LookupTable::LookupTable(std::vector<MeasuredRow> known, LookupRule rule)
    : known_(std::move(known)), rule_(rule) {
  CHECK(!known_.empty());
  if (rule_ != LookupRule::kRegression) return;
  std::vector<std::vector<double>> x;
  std::vector<double> y;
  for (const MeasuredRow& r : known_) {
    x.push_back(WithOne(LogSizes(r)));
    y.push_back(std::log(Rate(r)));
  }
  weights_ = Regression(x, y);
}

double LookupTable::RateOf(const MeasuredRow& row) const {
  const std::vector<double> at = LogSizes(row);
  const size_t sizes = rule_ == LookupRule::kPasses ? kSizesOfAPass : at.size();
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> rates;
  for (const MeasuredRow& r : known_) {
    const std::vector<double> there = LogSizes(r);
    double distance = 0;
    for (size_t i = 0; i < sizes; ++i) distance += std::abs(there[i] - at[i]);
    if (distance > least + 1e-9) continue;
    if (distance < least - 1e-9) rates.clear();
    least = std::min(least, distance);
    rates.push_back(Rate(r));
  }
  return MedianRate(std::move(rates));
}

double LookupTable::Milliseconds(const MeasuredRow& row) const {
  if (rule_ != LookupRule::kRegression) return Work(row) / RateOf(row);
  const std::vector<double> x = WithOne(LogSizes(row));
  double log_rate = 0;
  for (size_t i = 0; i < x.size(); ++i) log_rate += weights_[i] * x[i];
  return Work(row) / std::exp(log_rate);
}

}  // namespace pipelab
