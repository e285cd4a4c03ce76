#include "kernels/cpu/int4/int4_peak.h"

#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#include <immintrin.h>

#include "kernels/cpu/int4/int4_peak_loop.h"

namespace pipelab {
namespace cpu {

double Avx512Fp32Products(int rounds) {
  return RunProducts<16>(rounds, 32, _mm512_setzero_ps(),
                         [](__m512 s, __m512 x) { return _mm512_fmadd_ps(x, x, s); });
}
double Avx512Bf16Products(int rounds) {
  return RunProducts<16>(rounds, 64, _mm512_setzero_ps(), [](__m512 s, __m512 x) {
    return _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)x);  // NOLINT: there is no other cast
  });
}
double Avx512Int8Products(int rounds) {
  return RunProducts<16>(rounds, 128, _mm512_setzero_si512(),
                         [](__m512i s, __m512i x) { return _mm512_dpbusd_epi32(s, x, x); });
}

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
double Avx512Fp32Products(int) { return 0; }
double Avx512Bf16Products(int) { return 0; }
double Avx512Int8Products(int) { return 0; }
}  // namespace cpu
}  // namespace pipelab
#endif
