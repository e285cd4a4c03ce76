// Matrix products by oneDNN on the calling thread, and the time spent in them.
//
//   Sgemm gemm(&clock);
//   gemm.Run(kPlain, kTransposed, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);   // c = a b^T
//
// Row-major with leading dimensions. A refused call is a broken invariant: CHECK.
#ifndef PIPELAB_KERNELS_CPU_SGEMM_H_
#define PIPELAB_KERNELS_CPU_SGEMM_H_

#include <cstdint>

#include "kernels/cpu/library_clock.h"

namespace pipelab {
namespace cpu {

enum MatrixForm : char { kPlain = 'N', kTransposed = 'T' };

class Sgemm {
 public:
  explicit Sgemm(LibraryClock* clock) : clock_(clock) {}

  // c_MN = alpha a_MK b_KN + beta c_MN. With beta 0, c is not read.
  void Run(MatrixForm a_form, MatrixForm b_form, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc);

 private:
  LibraryClock* const clock_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_SGEMM_H_
