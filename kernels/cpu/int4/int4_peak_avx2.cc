#include "kernels/cpu/int4/int4_peak.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include "kernels/cpu/int4/int4_peak_loop.h"

namespace pipelab {
namespace cpu {

double Avx2Fp32Products(int rounds) {
  return RunProducts<12>(rounds, 16, _mm256_setzero_ps(),
                         [](__m256 s, __m256 x) { return _mm256_fmadd_ps(x, x, s); });
}
double Avx2Int8Products(int rounds) {
  return RunProducts<12>(rounds, 64, _mm256_setzero_si256(), [](__m256i s, __m256i x) {
    __m256i w = x;
    asm volatile("" : "+v"(w));  // or one product would do for all sums
    return _mm256_add_epi16(s, _mm256_maddubs_epi16(w, x));
  });
}

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
double Avx2Fp32Products(int) { return 0; }
double Avx2Int8Products(int) { return 0; }
}  // namespace cpu
}  // namespace pipelab
#endif
