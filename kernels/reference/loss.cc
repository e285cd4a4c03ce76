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

void LargestLogits(const RowsSize& size, In logits_MV, Out most_M) {
  for (int64_t i = 0; i < size.rows; ++i) {
    const In row = logits_MV.subspan(i * size.columns, size.columns);
    most_M[i] = *std::max_element(row.begin(), row.end());
  }
}

void SoftmaxSums(const RowsSize& size, In logits_MV, Indices targets_M, int64_t first, In most_M,
                 Out sums_M, Out target_logits_M) {
  for (int64_t i = 0; i < size.rows; ++i) {
    sums_M[i] = target_logits_M[i] = 0;
    for (int64_t j = 0; j < size.columns; ++j) {
      const double logit = logits_MV[i * size.columns + j];
      sums_M[i] += std::exp(logit - most_M[i]);
      if (targets_M[i] != kNoTarget && first + j == targets_M[i]) target_logits_M[i] = logit;
    }
  }
}

double CrossEntropyOfSums(Indices targets_M, In sums_M, In target_logits_M, Out most_M) {
  double sum = 0;
  for (size_t i = 0; i < sums_M.size(); ++i) {
    most_M[i] += std::log(sums_M[i]);
    if (targets_M[i] != kNoTarget) sum += most_M[i] - target_logits_M[i];
  }
  return sum;
}

void CrossEntropyPartGradient(const RowsSize& size, In logits_MV, Indices targets_M, int64_t first,
                              In lse_M, double scale, Out dlogits_MV) {
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < size.columns; ++j) {
      const int64_t place = i * size.columns + j;
      const double one_hot = first + j == targets_M[i] ? 1 : 0;
      const double softmax = std::exp(logits_MV[place] - lse_M[i]);
      dlogits_MV[place] = targets_M[i] == kNoTarget ? 0 : scale * (softmax - one_hot);
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
