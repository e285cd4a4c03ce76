#include "kernels/cpu/sgemm.h"

#include <oneapi/dnnl/dnnl.h>

#include "glog/logging.h"
#include "kernels/cpu/one_thread.h"

namespace pipelab {
namespace cpu {
void Sgemm::Run(MatrixForm a_form, MatrixForm b_form, int64_t m, int64_t n, int64_t k, float alpha,
                const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {  // an empty sum, which dnnl_sgemm refuses
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
    }
    return;
  }
  UseOneThread();
  const ScopedTimer timer(&clock_->ns);
  const dnnl_status_t status =
      dnnl_sgemm(a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  CHECK_EQ(status, dnnl_success) << "dnnl_sgemm " << m << " x " << n << " x " << k
                                 << ", leading dimensions " << lda << ", " << ldb << ", " << ldc;
}

}  // namespace cpu
}  // namespace pipelab
