#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// Where one (sample, head) lies in qkv_M3C and out_MC.
struct Head {
  Head(const AttentionShape& shape, int64_t sample, int64_t head)
      : width(shape.heads * shape.head_size),
        first_row(sample * shape.tokens),
        column(head * shape.head_size) {}

  int64_t q(int64_t token) const { return (first_row + token) * 3 * width + column; }
  int64_t k(int64_t token) const { return q(token) + width; }
  int64_t v(int64_t token) const { return q(token) + 2 * width; }
  int64_t out(int64_t token) const { return (first_row + token) * width + column; }

  int64_t width, first_row, column;
};

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class Body>
void ForEachQuery(const AttentionShape& shape, Body body) {
  for (int64_t s = 0; s < shape.samples; ++s) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const Head head(shape, s, h);
      for (int64_t i = 0; i < shape.tokens; ++i) {
        const int64_t keys = shape.causal ? i + 1 : shape.tokens;
        body(head, i, keys, (s * shape.heads + h) * shape.tokens + i);
      }
    }
  }
}

}  // namespace

void Attention(const AttentionShape& shape, In qkv_M3C, Out out_MC, Out lse_SHT) {
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
  std::vector<double> scores(shape.tokens);
  ForEachQuery(shape, [&](const Head& head, int64_t i, int64_t keys, int64_t row) {
    for (int64_t j = 0; j < keys; ++j) {
      scores[j] = scale * Dot(&qkv_M3C[head.q(i)], &qkv_M3C[head.k(j)], shape.head_size);
    }
    const double most = *std::max_element(scores.begin(), scores.begin() + keys);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) sum += std::exp(scores[j] - most);
    lse_SHT[row] = most + std::log(sum);
    for (int64_t d = 0; d < shape.head_size; ++d) {
      double out = 0;
      for (int64_t j = 0; j < keys; ++j) {
        out += std::exp(scores[j] - lse_SHT[row]) * qkv_M3C[head.v(j) + d];
      }
      out_MC[head.out(i) + d] = out;
    }
  });
}

// p = exp(score - lse); dp = dout v^T; dscore = p (dp - dout . out).
void AttentionGradient(const AttentionShape& shape, In dout_MC, In qkv_M3C, In out_MC, In lse_SHT,
                       Out dqkv_M3C) {
  const int64_t size = shape.head_size;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  std::fill(dqkv_M3C.begin(), dqkv_M3C.end(), 0.0);
  ForEachQuery(shape, [&](const Head& head, int64_t i, int64_t keys, int64_t row) {
    const double* dout = &dout_MC[head.out(i)];
    const double mean = Dot(dout, &out_MC[head.out(i)], size);
    for (int64_t j = 0; j < keys; ++j) {
      const double score = scale * Dot(&qkv_M3C[head.q(i)], &qkv_M3C[head.k(j)], size);
      const double p = std::exp(score - lse_SHT[row]);
      const double dscore = p * (Dot(dout, &qkv_M3C[head.v(j)], size) - mean);
      for (int64_t d = 0; d < size; ++d) {
        dqkv_M3C[head.q(i) + d] += scale * dscore * qkv_M3C[head.k(j) + d];
        dqkv_M3C[head.k(j) + d] += scale * dscore * qkv_M3C[head.q(i) + d];
        dqkv_M3C[head.v(j) + d] += p * dout[d];
      }
    }
  });
}

}  // namespace reference
}  // namespace pipelab
