#include "kernels/cpu/sgemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "glog/logging.h"
#include "kernels/cpu/one_thread.h"

namespace pipelab {
namespace cpu {
namespace {

struct PartSize {
  int64_t m, n;
};

// Rows of activations are many: parts of 576, which oneDNN's kernels divide without a rest (of 6,
// 8, 24 or 48 rows), so that a row has the bits that it has in the whole. A weight gradient has few
// rows and columns, and long sums: two parts either way. Depends on the product's sizes alone.
PartSize PartOf(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kRows = 576, kLongSum = 4096, kSmallest = 128;
  if (m > kRows) return {kRows, n};
  if (k < kLongSum || m > k || n > k) return {m, n};
  const auto half = [=](int64_t size) { return std::max(kSmallest, (size / 2 + 47) / 48 * 48); };
  return {half(m), half(n)};
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
  const ScopedTimer timer(&clock_->ns);
  const PartSize part = PartOf(m, n, k);
  const int64_t across = (n + part.n - 1) / part.n;
  team_->Run((m + part.m - 1) / part.m * across, 1, [&](int64_t p, int64_t) {
    UseOneThread();
    const int64_t i = p / across * part.m, j = p % across * part.n;
    const dnnl_status_t status =
        dnnl_sgemm(a_form, b_form, std::min(part.m, m - i), std::min(part.n, n - j), k, alpha,
                   a + i * (a_form == kPlain ? lda : 1), lda, b + j * (b_form == kPlain ? 1 : ldb),
                   ldb, beta, c + i * ldc + j, ldc);
    CHECK_EQ(status, dnnl_success) << "dnnl_sgemm " << m << " x " << n << " x " << k
                                   << ", leading dimensions " << lda << ", " << ldb << ", " << ldc;
  });
}

}  // namespace cpu
}  // namespace pipelab
