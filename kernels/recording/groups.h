// Groups of kernels that note their calls in `record` and leave the work to `of`.
#ifndef PIPELAB_KERNELS_RECORDING_GROUPS_H_
#define PIPELAB_KERNELS_RECORDING_GROUPS_H_

#include <memory>
#include <string>

#include "kernels/recording/recording_backend.h"

namespace pipelab {

// The shape of x as a matrix: "32x128".
std::string RowsText(const Tensor& x);

std::unique_ptr<AttentionKernels> RecordAttention(AttentionKernels* of, CallRecord* record);
std::unique_ptr<BatchNormKernels> RecordBatchNorm(BatchNormKernels* of, CallRecord* record);
std::unique_ptr<ConvolutionKernels> RecordConvolution(ConvolutionKernels* of, CallRecord* record);
std::unique_ptr<EmbeddingKernels> RecordEmbedding(EmbeddingKernels* of, CallRecord* record);
std::unique_ptr<ExpertKernels> RecordExperts(ExpertKernels* of, CallRecord* record);
std::unique_ptr<GraphKernels> RecordGraphs(GraphKernels* of, CallRecord* record);
std::unique_ptr<QuantizedKernels> RecordQuantized(QuantizedKernels* of, CallRecord* record);
std::unique_ptr<LossKernels> RecordLoss(LossKernels* of, CallRecord* record);
std::unique_ptr<OptimizerKernels> RecordOptimizer(OptimizerKernels* of, CallRecord* record);
std::unique_ptr<PoolingKernels> RecordPooling(PoolingKernels* of, CallRecord* record);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_RECORDING_GROUPS_H_
