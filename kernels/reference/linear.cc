#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {

void Linear(const MatmulSize& size, In x_MK, In w_KN, In b_N, Out y_MN) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      double sum = b_N.empty() ? 0 : b_N[j];
      for (int64_t l = 0; l < size.k; ++l) sum += x_MK[i * size.k + l] * w_KN[l * size.n + j];
      y_MN[i * size.n + j] = sum;
    }
  }
}

void LinearInputGradient(const MatmulSize& size, In dy_MN, In w_KN, Out dx_MK) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t l = 0; l < size.k; ++l) {
      double sum = 0;
      for (int64_t j = 0; j < size.n; ++j) sum += dy_MN[i * size.n + j] * w_KN[l * size.n + j];
      dx_MK[i * size.k + l] = sum;
    }
  }
}

void LinearWeightGradient(const MatmulSize& size, In x_MK, In dy_MN, Out dw_KN, Out db_N) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t l = 0; l < size.k; ++l) {
      for (int64_t j = 0; j < size.n; ++j) {
        dw_KN[l * size.n + j] += x_MK[i * size.k + l] * dy_MN[i * size.n + j];
      }
    }
    if (db_N.empty()) continue;
    for (int64_t j = 0; j < size.n; ++j) db_N[j] += dy_MN[i * size.n + j];
  }
}

void LinearTransposed(const MatmulSize& size, In x_MK, In w_NK, Out y_MN) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < size.k; ++l) sum += x_MK[i * size.k + l] * w_NK[j * size.k + l];
      y_MN[i * size.n + j] = sum;
    }
  }
}

void LinearTransposedInputGradient(const MatmulSize& size, In dy_MN, In w_NK, Out dx_MK) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t l = 0; l < size.k; ++l) {
      double sum = 0;
      for (int64_t j = 0; j < size.n; ++j) sum += dy_MN[i * size.n + j] * w_NK[j * size.k + l];
      dx_MK[i * size.k + l] = sum;
    }
  }
}

void LinearTransposedWeightGradient(const MatmulSize& size, In x_MK, In dy_MN, Out dw_NK) {
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      for (int64_t l = 0; l < size.k; ++l) {
        dw_NK[j * size.k + l] += x_MK[i * size.k + l] * dy_MN[i * size.n + j];
      }
    }
  }
}

}  // namespace reference
}  // namespace pipelab
