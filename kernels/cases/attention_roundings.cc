#include "kernels/cases/attention_roundings.h"

#include <algorithm>
#include <cmath>

namespace pipelab {
namespace {

// Sums of terms, an element each.
class Terms {
 public:
  explicit Terms(int64_t elements) : sums_(elements), squares_(elements) {}
  void Add(int64_t i, double term) {
    sums_[i] += std::abs(term);
    squares_[i] += term * term;
  }
  std::vector<double> Roundings() const {
    std::vector<double> all(sums_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = 0x1.0p-8 * std::min(sums_[i], 4 * std::sqrt(squares_[i]));
    }
    return all;
  }

 private:
  std::vector<double> sums_, squares_;
};

// A query with a key that it sees: where the rows of one head lie.
struct Pair {
  int64_t q, k, v, out, lse;
};

template <class Body>
void ForEachPair(const AttentionCall& call, const Body& body) {
  for (int64_t s = 0; s < call.samples; ++s) {
    for (int64_t h = 0; h < call.heads; ++h) {
      for (int64_t i = 0; i < call.queries; ++i) {
        for (int64_t j = call.FirstKeyOf(i); j < call.KeysOf(s, i); ++j) {
          const int64_t column = h * call.head_size;
          const int64_t key = s * call.kv_sample + j * call.kv_row + h / call.group * call.kv_head;
          body(Pair{call.q_offset + s * call.q_sample + i * call.q_row + column,
                    call.k_offset + key, call.v_offset + key,
                    (s * call.queries + i) * call.out_width() + h * call.value_size,
                    (s * call.heads + h) * call.queries + i});
        }
      }
    }
  }
}

double DotAt(const Tensor& a, int64_t at_a, const Tensor& b, int64_t at_b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a.f32()[at_a + i]} * b.f32()[at_b + i];
  return sum;
}

double Probability(const AttentionCall& call, const Tensor& q, const Tensor& kv, const Tensor& lse,
                   const Pair& at) {
  const double scale = 1 / std::sqrt(static_cast<double>(call.head_size));
  return std::exp(scale * DotAt(q, at.q, kv, at.k, call.head_size) - lse.f32()[at.lse]);
}

}  // namespace

std::vector<double> OutRoundings(const AttentionCall& call, const Tensor& q, const Tensor& kv,
                                 const Tensor& lse) {
  Terms out(call.samples * call.queries * call.out_width());
  ForEachPair(call, [&](const Pair& at) {
    const double p = Probability(call, q, kv, lse, at);
    for (int64_t d = 0; d < call.value_size; ++d) out.Add(at.out + d, p * kv.f32()[at.v + d]);
  });
  return out.Roundings();
}

GradientRoundings AttentionGradientRoundings(const AttentionCall& call, const Tensor& dout,
                                             const Tensor& q, const Tensor& kv, const Tensor& out,
                                             const Tensor& lse) {
  const int64_t size = call.head_size, value_size = call.value_size;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  Terms dq(q.size()), dkv(kv.size());
  ForEachPair(call, [&](const Pair& at) {
    const double p = Probability(call, q, kv, lse, at);
    const double dp = DotAt(dout, at.out, kv, at.v, value_size),
                 mean = DotAt(dout, at.out, out, at.out, value_size);
    const double ds = scale * p * (dp - mean);
    for (int64_t d = 0; d < size; ++d) {
      dq.Add(at.q + d, ds * kv.f32()[at.k + d]);
      dkv.Add(at.k + d, ds * q.f32()[at.q + d]);
    }
    for (int64_t d = 0; d < value_size; ++d) dkv.Add(at.v + d, p * dout.f32()[at.out + d]);
  });
  return {dq.Roundings(), dkv.Roundings()};
}

}  // namespace pipelab
