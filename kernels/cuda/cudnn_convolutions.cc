#include "kernels/cuda/cudnn_convolutions.h"

#include <utility>
#include <vector>

#include "kernels/cuda/cuda_status.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int kMostAlgorithms = 16;

}  // namespace

struct CudnnConvolutions::Plan {
  ~Plan() {
    if (x != nullptr) cudnnDestroyTensorDescriptor(x);
    if (y != nullptr) cudnnDestroyTensorDescriptor(y);
    if (w != nullptr) cudnnDestroyFilterDescriptor(w);
    if (convolution != nullptr) cudnnDestroyConvolutionDescriptor(convolution);
  }

  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  int algorithm = -1;                         // none
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;  // of the algorithm
  bool has_run = false;
};

// The first that is deterministic and fits.
template <class Performance>
void CudnnConvolutions::TakeFirstThatFits(const std::vector<Performance>& offers,
                                          int64_t workspace_bytes, Plan* plan) {
  for (const Performance& offer : offers) {
    if (offer.status != CUDNN_STATUS_SUCCESS || offer.determinism != CUDNN_DETERMINISTIC ||
        static_cast<int64_t>(offer.memory) > workspace_bytes) {
      continue;
    }
    plan->algorithm = static_cast<int>(offer.algo);
    plan->math = offer.mathType;
    return;
  }
}

CudnnConvolutions::CudnnConvolutions(Precision precision) : precision_(precision) {}

CudnnConvolutions::~CudnnConvolutions() {
  plans_.clear();
  if (handle_ != nullptr) cudnnDestroy(handle_);
}

CudnnConvolutions::Key CudnnConvolutions::KeyOf(const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  return {s.samples,      s.height,        s.width,        s.in_channels,
          s.out_channels, s.kernel_height, s.kernel_width, s.stride_height,
          s.stride_width, s.pad_height,    s.pad_width,    static_cast<int64_t>(call.pass),
          call.bfloat16};
}

bool CudnnConvolutions::HasRun(const ConvolutionCall& call) const {
  const auto found = plans_.find(KeyOf(call));
  return found != plans_.end() && found->second != nullptr && found->second->has_run;
}

absl::StatusOr<CudnnConvolutions::Plan*> CudnnConvolutions::PlanOf(const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  std::unique_ptr<Plan>& plan = plans_[KeyOf(call)];
  if (plan != nullptr) return plan.get();
  plan = std::make_unique<Plan>();
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  const cudnnDataType_t type = call.bfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  // Tensor cores take bfloat16 numbers as they are; floats they would round.
  const cudnnMathType_t math = call.bfloat16                       ? CUDNN_TENSOR_OP_MATH
                               : precision_ == Precision::kFloat32 ? CUDNN_FMA_MATH
                                                                   : CUDNN_DEFAULT_MATH;
  for (const cudnnStatus_t status :
       {cudnnCreateTensorDescriptor(&plan->x), cudnnCreateTensorDescriptor(&plan->y),
        cudnnCreateFilterDescriptor(&plan->w), cudnnCreateConvolutionDescriptor(&plan->convolution),
        cudnnSetTensor4dDescriptor(plan->x, CUDNN_TENSOR_NHWC, type, number(s.samples),
                                   number(s.in_channels), number(s.height), number(s.width)),
        cudnnSetTensor4dDescriptor(plan->y, CUDNN_TENSOR_NHWC, type, number(s.samples),
                                   number(s.out_channels), number(s.out_height()),
                                   number(s.out_width())),
        cudnnSetFilter4dDescriptor(plan->w, type, CUDNN_TENSOR_NHWC, number(s.out_channels),
                                   number(s.in_channels), number(s.kernel_height),
                                   number(s.kernel_width)),
        cudnnSetConvolution2dDescriptor(
            plan->convolution, number(s.pad_height), number(s.pad_width), number(s.stride_height),
            number(s.stride_width), 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        cudnnSetConvolutionMathType(plan->convolution, math)}) {
    PIPELAB_RETURN_IF_ERROR(CudnnStatus(status, "cuDNN's description of a convolution"));
  }
  PIPELAB_RETURN_IF_ERROR(Choose(call, plan.get()));
  return plan.get();
}

absl::Status CudnnConvolutions::Choose(const ConvolutionCall& call, Plan* plan) {
  int count = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (call.pass) {
    case ConvolutionPass::kForward: {
      std::vector<cudnnConvolutionFwdAlgoPerf_t> offers(kMostAlgorithms);
      status =
          cudnnGetConvolutionForwardAlgorithm_v7(handle_, plan->x, plan->w, plan->convolution,
                                                 plan->y, kMostAlgorithms, &count, offers.data());
      offers.resize(count);
      TakeFirstThatFits(offers, call.workspace_bytes, plan);
      break;
    }
    case ConvolutionPass::kInputGradient: {
      std::vector<cudnnConvolutionBwdDataAlgoPerf_t> offers(kMostAlgorithms);
      status = cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, plan->w, plan->y,
                                                           plan->convolution, plan->x,
                                                           kMostAlgorithms, &count, offers.data());
      offers.resize(count);
      TakeFirstThatFits(offers, call.workspace_bytes, plan);
      break;
    }
    case ConvolutionPass::kWeightGradient: {
      std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> offers(kMostAlgorithms);
      status = cudnnGetConvolutionBackwardFilterAlgorithm_v7(
          handle_, plan->x, plan->y, plan->convolution, plan->w, kMostAlgorithms, &count,
          offers.data());
      offers.resize(count);
      TakeFirstThatFits(offers, call.workspace_bytes, plan);
      break;
    }
  }
  const absl::Status asked = CudnnStatus(status, "cuDNN's choice of an algorithm");
  if (!asked.ok()) return absl::IsUnimplemented(asked) ? absl::OkStatus() : asked;
  // The offer's memory is of its own kind of arithmetic. Of floats it stays as it was asked for.
  if (!call.bfloat16 || plan->algorithm < 0) return absl::OkStatus();
  return CudnnStatus(cudnnSetConvolutionMathType(plan->convolution, plan->math),
                     "cuDNN's kind of arithmetic");
}

absl::StatusOr<bool> CudnnConvolutions::Run(const ConvolutionCall& call, cudaStream_t stream) {
  if (handle_ == nullptr) {
    PIPELAB_RETURN_IF_ERROR(CudnnStatus(cudnnCreate(&handle_), "cuDNN"));
    PIPELAB_RETURN_IF_ERROR(CudnnStatus(cudnnSetStream(handle_, stream), "cuDNN's stream"));
  }
  PIPELAB_ASSIGN_OR_RETURN(Plan* const plan, PlanOf(call));
  if (plan->algorithm < 0) return false;
  const float one = 1.0f, zero = 0.0f;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (call.pass) {
    case ConvolutionPass::kForward:
      status = cudnnConvolutionForward(
          handle_, &one, plan->x, call.x, plan->w, call.w, plan->convolution,
          static_cast<cudnnConvolutionFwdAlgo_t>(plan->algorithm), call.workspace,
          call.workspace_bytes, &zero, plan->y, call.y);
      break;
    case ConvolutionPass::kInputGradient:
      status = cudnnConvolutionBackwardData(
          handle_, &one, plan->w, call.w, plan->y, call.y, plan->convolution,
          static_cast<cudnnConvolutionBwdDataAlgo_t>(plan->algorithm), call.workspace,
          call.workspace_bytes, &zero, plan->x, call.x);
      break;
    case ConvolutionPass::kWeightGradient:
      status = cudnnConvolutionBackwardFilter(
          handle_, &one, plan->x, call.x, plan->y, call.y, plan->convolution,
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(plan->algorithm), call.workspace,
          call.workspace_bytes, &zero, plan->w, call.w);
      break;
  }
  const absl::Status ran = CudnnStatus(status, "a convolution");
  if (absl::IsUnimplemented(ran)) {
    plan->algorithm = -1;  // offered, and refused all the same
    return false;
  }
  PIPELAB_RETURN_IF_ERROR(ran);
  plan->has_run = true;
  return true;
}

}  // namespace gpu
}  // namespace pipelab
