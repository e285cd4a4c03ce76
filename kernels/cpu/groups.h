// The CPU's groups of kernels: loops and oneDNN behind each group's interface.
#ifndef PIPELAB_KERNELS_CPU_GROUPS_H_
#define PIPELAB_KERNELS_CPU_GROUPS_H_

#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/library_clock.h"
#include "kernels/cpu/sgemm.h"

namespace pipelab {
namespace cpu {

inline float* Data(const Tensor& x) { return x.f32().data(); }

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena, Sgemm* gemm);
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels();
std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena, LibraryClock* clock);
std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels();
std::unique_ptr<ExpertKernels> MakeExpertKernels(Sgemm* gemm);
std::unique_ptr<GraphKernels> MakeGraphKernels(Team* team);
std::unique_ptr<LossKernels> MakeLossKernels();
std::unique_ptr<OptimizerKernels> MakeOptimizerKernels();
std::unique_ptr<PoolingKernels> MakePoolingKernels();
std::unique_ptr<QuantizedKernels> MakeQuantizedKernels();

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_GROUPS_H_
