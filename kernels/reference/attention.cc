#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// Where one (sample, head) lies in qkv_M3C (by token) and out_MC (by query of the call).
struct Head {
  Head(const AttentionShape& shape, int64_t sample, int64_t head)
      : width(shape.heads * shape.head_size),
        first_row(sample * shape.tokens),
        first_out(sample * shape.num_queries() - shape.first_query),
        column(head * shape.head_size) {}

  int64_t q(int64_t token) const { return (first_row + token) * 3 * width + column; }
  int64_t k(int64_t token) const { return q(token) + width; }
  int64_t v(int64_t token) const { return q(token) + 2 * width; }
  int64_t out(int64_t token) const { return (first_out + token) * width + column; }

  int64_t width, first_row, first_out, column;
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
      for (int64_t i = shape.first_query; i < shape.end_query(); ++i) {
        const int64_t keys = shape.causal ? i + 1 : shape.tokens;
        body(head, i, keys, (s * shape.heads + h) * shape.num_queries() + i - shape.first_query);
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

// What a call does not add to starts at 0: its q, and all k and v where it has the last token.
void ClearGradient(const AttentionShape& shape, Out dqkv_M3C) {
  const int64_t width = shape.heads * shape.head_size;
  const bool last = shape.end_query() == shape.tokens;
  for (int64_t i = 0; i < shape.samples * shape.tokens; ++i) {
    const int64_t token = i % shape.tokens;
    const bool query = token >= shape.first_query && token < shape.end_query();
    const Out row = dqkv_M3C.subspan(i * 3 * width, 3 * width);
    if (query) std::fill(row.begin(), row.begin() + width, 0.0);
    if (last) std::fill(row.begin() + width, row.end(), 0.0);
  }
}

// p = exp(score - lse); dp = dout v^T; dscore = p (dp - dout . out).
void AttentionGradient(const AttentionShape& shape, In dout_MC, In qkv_M3C, In out_MC, In lse_SHT,
                       Out dqkv_M3C) {
  const int64_t size = shape.head_size;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  ClearGradient(shape, dqkv_M3C);
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
