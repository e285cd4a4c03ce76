#include "kernels/cpu/sgemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <chrono>

#include "glog/logging.h"

namespace pipelab {
namespace cpu {
namespace {

// OpenMP's thread count belongs to the calling thread: each device thread sets its own, once.
void UseOneThread() {
  thread_local const bool set = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(set);
}

}  // namespace

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
  const auto start = std::chrono::steady_clock::now();
  const dnnl_status_t status =
      dnnl_sgemm(a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  CHECK_EQ(status, dnnl_success) << "dnnl_sgemm " << m << " x " << n << " x " << k
                                 << ", leading dimensions " << lda << ", " << ldb << ", " << ldc;
  ns_ +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count();
}

}  // namespace cpu
}  // namespace pipelab
