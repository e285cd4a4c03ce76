#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// Where one query of one (sample, head) and its keys lie, in q, kv, out and lse.
struct Query {
  int64_t first, keys;  // that it sees: [first, keys)
  int64_t q, k, v, kv_row, out, lse;
};

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class Body>
void ForEachQuery(const AttentionCall& call, Body body) {
  for (int64_t s = 0; s < call.samples; ++s) {
    for (int64_t h = 0; h < call.heads; ++h) {
      for (int64_t i = 0; i < call.queries; ++i) {
        Query query;
        query.first = call.FirstKeyOf(i);
        query.keys = call.KeysOf(s, i);
        query.q = call.q_offset + s * call.q_sample + i * call.q_row + h * call.head_size;
        const int64_t kv_column = h / call.group * call.kv_head;
        query.k = call.k_offset + s * call.kv_sample + kv_column;
        query.v = call.v_offset + s * call.kv_sample + kv_column;
        query.kv_row = call.kv_row;
        query.out = (s * call.queries + i) * call.out_width() + h * call.value_size;
        query.lse = (s * call.heads + h) * call.queries + i;
        body(query);
      }
    }
  }
}

// What a call does not add to starts at 0: its q, and all k and v, where it writes those.
void ClearGradient(const AttentionCall& call, Out dq, Out dkv) {
  const auto clear = [&](Out rows, int64_t from, int64_t width) {
    std::fill_n(rows.begin() + from, width, 0.0);
  };
  for (int64_t s = 0; s < call.samples; ++s) {
    for (int64_t i = 0; !call.adds_queries && i < call.queries; ++i) {
      clear(dq, call.q_offset + s * call.q_sample + i * call.q_row, call.width());
    }
    for (int64_t i = 0; call.writes_all_keys && i < call.keys; ++i) {
      for (int64_t h = 0; h < call.kv_heads(); ++h) {
        const int64_t at = s * call.kv_sample + i * call.kv_row + h * call.kv_head;
        clear(dkv, call.k_offset + at, call.head_size);
        clear(dkv, call.v_offset + at, call.value_size);
      }
    }
  }
}

}  // namespace

void Attention(const AttentionCall& call, In q, In kv, Out out_MC, Out lse_SHQ) {
  const double scale = 1 / std::sqrt(static_cast<double>(call.head_size));
  std::vector<double> scores(call.keys);
  ForEachQuery(call, [&](const Query& at) {
    for (int64_t j = at.first; j < at.keys; ++j) {
      scores[j] = scale * Dot(&q[at.q], &kv[at.k + j * at.kv_row], call.head_size);
    }
    const double most = *std::max_element(scores.begin() + at.first, scores.begin() + at.keys);
    double sum = 0;
    for (int64_t j = at.first; j < at.keys; ++j) sum += std::exp(scores[j] - most);
    lse_SHQ[at.lse] = most + std::log(sum);
    for (int64_t d = 0; d < call.value_size; ++d) {
      double out = 0;
      for (int64_t j = at.first; j < at.keys; ++j) {
        out += std::exp(scores[j] - lse_SHQ[at.lse]) * kv[at.v + j * at.kv_row + d];
      }
      out_MC[at.out + d] = out;
    }
  });
}

void Rotate(const RotaryShape& shape, bool back, int64_t columns, Out x_MC) {
  const int64_t half = shape.head_size / 2;
  for (int64_t row = 0; row < shape.samples * shape.tokens; ++row) {
    for (int64_t i = 0; i < shape.heads * half; ++i) {
      const int64_t pair = i % half, at = row * columns + i / half * shape.head_stride() + pair;
      const double angle = shape.Angle(shape.first_token + row % shape.tokens, pair);
      const double c = std::cos(angle), s = back ? -std::sin(angle) : std::sin(angle);
      const double a = x_MC[at], b = x_MC[at + half];
      x_MC[at] = a * c - b * s;
      x_MC[at + half] = a * s + b * c;
    }
  }
}

void ShareHead(int64_t rows, int64_t size, int64_t heads, int64_t columns, In x_MD, Out y) {
  for (int64_t i = 0; i < rows * heads; ++i) {
    for (int64_t d = 0; d < size; ++d) y[i * columns + d] = x_MD[i / heads * size + d];
  }
}

void ShareHeadGradient(int64_t rows, int64_t size, int64_t heads, int64_t columns, In dy,
                       Out dx_MD) {
  for (int64_t i = 0; i < rows * size; ++i) {
    dx_MD[i] = 0;
    for (int64_t h = 0; h < heads; ++h) {
      dx_MD[i] += dy[(i / size * heads + h) * columns + i % size];
    }
  }
}

void Merge(int64_t n, int64_t m, int64_t heads, In part_NC, In part_lse_HN, Out out_MC,
           Out lse_HM) {
  const int64_t size = static_cast<int64_t>(out_MC.size()) / (m * heads);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < n; ++i) {
      const double part = part_lse_HN[h * n + i], most = std::max(part, lse_HM[h * m + i]);
      const double before = lse_HM[h * m + i];
      const double lse = most + std::log(std::exp(part - most) + std::exp(before - most));
      for (int64_t d = 0; d < size; ++d) {
        const int64_t at = (i * heads + h) * size + d;
        out_MC[at] = out_MC[at] * std::exp(before - lse) + part_NC[at] * std::exp(part - lse);
      }
      lse_HM[h * m + i] = lse;
    }
  }
}

// p = exp(score - lse); dp = dout v^T; dscore = p (dp - dout . out).
void AttentionGradient(const AttentionCall& call, In dout_MC, In q, In kv, In out_MC, In lse_SHQ,
                       Out dq, Out dkv) {
  const int64_t size = call.head_size, value_size = call.value_size;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  ClearGradient(call, dq, dkv);
  ForEachQuery(call, [&](const Query& at) {
    const double* dout = &dout_MC[at.out];
    const double mean = Dot(dout, &out_MC[at.out], value_size);
    for (int64_t j = at.first; j < at.keys; ++j) {
      const int64_t k = at.k + j * at.kv_row, v = at.v + j * at.kv_row;
      const double p = std::exp(scale * Dot(&q[at.q], &kv[k], size) - lse_SHQ[at.lse]);
      const double dscore = p * (Dot(dout, &kv[v], value_size) - mean);
      for (int64_t d = 0; d < size; ++d) {
        dq[at.q + d] += scale * dscore * kv[k + d];
        dkv[k + d] += scale * dscore * q[at.q + d];
      }
      for (int64_t d = 0; d < value_size; ++d) dkv[v + d] += p * dout[d];
    }
  });
}

}  // namespace reference
}  // namespace pipelab
