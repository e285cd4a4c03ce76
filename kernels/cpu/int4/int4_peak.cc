#include "kernels/cpu/int4/int4_peak.h"

#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#include <immintrin.h>

namespace pipelab {
namespace cpu {
namespace {

constexpr int kSums = 16;  // enough for the latency of every product

// `product(sum, x)`; the compiler must believe that x may be anything and that sums are read.
template <class V, class F>
void Run(int rounds, V x, const F& product) {
  V sums[kSums] = {};
  asm volatile("" : "+v"(x));
  for (V& sum : sums) asm volatile("" : "+v"(sum));  // not known to be equal
  for (int i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) sums[j] = product(sums[j], x);
  }
  for (V& sum : sums) asm volatile("" : : "v"(sum));
}

double Flops(int rounds, int of_product) { return double{1} * rounds * kSums * of_product; }

}  // namespace

double Fp32Products(int rounds) {
  Run(rounds, _mm512_setzero_ps(), [](__m512 s, __m512 x) { return _mm512_fmadd_ps(x, x, s); });
  return Flops(rounds, 32);
}
double Bf16Products(int rounds) {
  Run(rounds, _mm512_setzero_ps(), [](__m512 s, __m512 x) {
    return _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)x);  // NOLINT: there is no other cast
  });
  return Flops(rounds, 64);
}
double Int8Products(int rounds) {
  Run(rounds, _mm512_setzero_si512(),
      [](__m512i s, __m512i x) { return _mm512_dpbusd_epi32(s, x, x); });
  return Flops(rounds, 128);
}

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
double Fp32Products(int) { return 0; }
double Bf16Products(int) { return 0; }
double Int8Products(int) { return 0; }
}  // namespace cpu
}  // namespace pipelab
#endif
