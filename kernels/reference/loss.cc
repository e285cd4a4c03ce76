#include <algorithm>
#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

double LogSumExp(In row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double v : row) sum += std::exp(v - most);
  return most + std::log(sum);
}

}  // namespace

double CrossEntropy(const RowsSize& size, In logits_MV, Indices targets_M) {
  double sum = 0;
  for (int64_t i = 0; i < size.rows; ++i) {
    if (targets_M[i] == kNoTarget) continue;
    const In row = logits_MV.subspan(i * size.columns, size.columns);
    sum += LogSumExp(row) - row[targets_M[i]];
  }
  return sum;
}

void CrossEntropyGradient(const RowsSize& size, In logits_MV, Indices targets_M, double scale,
                          Out dlogits_MV) {
  for (int64_t i = 0; i < size.rows; ++i) {
    const In row = logits_MV.subspan(i * size.columns, size.columns);
    const double lse = LogSumExp(row);
    for (int64_t j = 0; j < size.columns; ++j) {
      const double one_hot = j == targets_M[i] ? 1 : 0;
      const double difference = targets_M[i] == kNoTarget ? 0 : std::exp(row[j] - lse) - one_hot;
      dlogits_MV[i * size.columns + j] = scale * difference;
    }
  }
}

double SquaredError(In y, In targets) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += (y[i] - targets[i]) * (y[i] - targets[i]);
  return sum;
}

void SquaredErrorGradient(In y, In targets, double scale, Out dy) {
  for (size_t i = 0; i < y.size(); ++i) dy[i] = 2 * scale * (y[i] - targets[i]);
}

double BinaryCrossEntropy(In logits, In targets) {
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double z = logits[i];  // e^z may overflow, e^-|z| not; z + |z| keeps a NaN
    sum += (z + std::abs(z)) / 2 + std::log1p(std::exp(-std::abs(z))) - targets[i] * z;
  }
  return sum;
}

void BinaryCrossEntropyGradient(In logits, In targets, double scale, Out dlogits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    dlogits[i] = scale * (1 / (1 + std::exp(-logits[i])) - targets[i]);
  }
}

}  // namespace reference
}  // namespace pipelab
