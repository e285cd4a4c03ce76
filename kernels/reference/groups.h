// The reference's groups of kernels: functions.h behind each group's interface.
#ifndef PIPELAB_KERNELS_REFERENCE_GROUPS_H_
#define PIPELAB_KERNELS_REFERENCE_GROUPS_H_

#include <memory>

#include "kernels/backend.h"

namespace pipelab {
namespace reference {

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena);
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels();
std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena);
std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels();
std::unique_ptr<ExpertKernels> MakeExpertKernels();
std::unique_ptr<GraphKernels> MakeGraphKernels();
std::unique_ptr<LossKernels> MakeLossKernels();
std::unique_ptr<OptimizerKernels> MakeOptimizerKernels();
std::unique_ptr<PoolingKernels> MakePoolingKernels();
std::unique_ptr<QuantizedKernels> MakeQuantizedKernels();

}  // namespace reference
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_REFERENCE_GROUPS_H_
