// The parts of the list of kernel_case.h, one function a group of kernels, and what they share.
#ifndef PIPELAB_KERNELS_CASES_CASE_GROUPS_H_
#define PIPELAB_KERNELS_CASES_CASE_GROUPS_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cases/kernel_case.h"

namespace pipelab {

void AddAttentionCases(CaseSize size, std::vector<KernelCase>* cases);
void AddBatchNormCases(CaseSize size, std::vector<KernelCase>* cases);
void AddConvolutionCases(CaseSize size, std::vector<KernelCase>* cases);
void AddEmbeddingCases(CaseSize size, std::vector<KernelCase>* cases);
void AddExpertCases(CaseSize size, std::vector<KernelCase>* cases);
void AddGraphCases(CaseSize size, std::vector<KernelCase>* cases);
void AddLossCases(CaseSize size, std::vector<KernelCase>* cases);
void AddOptimizerCases(CaseSize size, std::vector<KernelCase>* cases);
void AddPoolingCases(CaseSize size, std::vector<KernelCase>* cases);
void AddQuantizedCases(CaseSize size, std::vector<KernelCase>* cases);

using Tensors = std::vector<Tensor>;

inline constexpr TensorRole kOut = TensorRole::kOutput, kAdded = TensorRole::kAccumulated;

inline double Floats(double n) { return 4 * n; }  // bytes

inline double MaxAbs(const Tensor& x) {
  double most = 0;
  for (float v : x.f32()) most = std::max(most, std::abs(double{v}));
  return most;
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_CASE_GROUPS_H_
