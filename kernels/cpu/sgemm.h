// Matrix products by oneDNN, and the time spent in them. A large one is computed in parts by a team
// of threads; parts are the same for any number of threads, and so are bits.
//
//   Sgemm gemm(&team, &clock);
//   gemm.Run(kPlain, kTransposed, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);   // c = a b^T
//
// Row-major with leading dimensions. A refused call is a broken invariant: CHECK.
#ifndef PIPELAB_KERNELS_CPU_SGEMM_H_
#define PIPELAB_KERNELS_CPU_SGEMM_H_

#include <cstdint>

#include "kernels/cpu/library_clock.h"
#include "kernels/cpu/team.h"

namespace pipelab {
namespace cpu {

enum MatrixForm : char { kPlain = 'N', kTransposed = 'T' };

class Sgemm {
 public:
  Sgemm(Team* team, LibraryClock* clock) : team_(team), clock_(clock) {}

  // c_MN = alpha a_MK b_KN + beta c_MN. With beta 0, c is not read.
  void Run(MatrixForm a_form, MatrixForm b_form, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc);

 private:
  Team* const team_;
  LibraryClock* const clock_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_SGEMM_H_
