#include "kernels/cuda/cublas_products.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper

cublasComputeType_t ComputeTypeOf(const MatmulCall& call, Precision precision) {
  if (call.type != MatmulCall::Type::kFloat32) return CUBLAS_COMPUTE_32F;
  switch (precision) {
    case Precision::kFloat32:
      return CUBLAS_COMPUTE_32F;
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
  }
  return CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t EpilogueOf(const MatmulCall& call) {
  switch (call.then) {
    case MatmulCall::Then::kNothing:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case MatmulCall::Then::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case MatmulCall::Then::kBiasGelu:
      return call.bias == nullptr ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case MatmulCall::Then::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool HasAux(const MatmulCall& call) {
  return call.then == MatmulCall::Then::kBiasGelu || call.then == MatmulCall::Then::kGeluGradient;
}

template <class T>
absl::Status Set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  return CublasStatus(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
                      "cuBLASLt's description of a product");
}

// What follows a product has its addresses in the description. The choice of an algorithm may look
// at them as well.
absl::Status SetAddresses(const MatmulCall& call, cublasLtMatmulDesc_t desc) {
  if (call.bias != nullptr) {
    PIPELAB_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias));
  }
  if (!HasAux(call)) return absl::OkStatus();
  return Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.aux);
}

template <class T>
absl::Status Set(cublasLtMatmulPreference_t preference,
                 cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  return CublasStatus(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
      "cuBLASLt's preferences");
}

}  // namespace

struct CublasProducts::Plan {
  ~Plan() {
    if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (desc != nullptr) cublasLtMatmulDescDestroy(desc);
  }

  cublasLtMatmulDesc_t desc = nullptr;
  // The library's matrices are column-major, so a row-major c = a b is its c^T = b^T a^T: b comes
  // first.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulAlgo_t algorithm;
  bool found = false;

  absl::Status Describe(const MatmulCall& call, Precision precision);
  absl::Status SetLayouts(const MatmulCall& call);
  absl::Status SetPreference();
  absl::Status Choose(const MatmulCall& call, cublasLtHandle_t handle);
};

absl::Status CublasProducts::Plan::Describe(const MatmulCall& call, Precision precision) {
  PIPELAB_RETURN_IF_ERROR(
      CublasStatus(cublasLtMatmulDescCreate(&desc, ComputeTypeOf(call, precision), CUDA_R_32F),
                   "cuBLASLt's description of a product"));
  const cublasOperation_t of_first = call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_second = call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  PIPELAB_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, of_first));
  PIPELAB_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, of_second));
  PIPELAB_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(call)));
  if (HasAux(call)) {
    PIPELAB_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.n));
  }
  return SetAddresses(call, desc);
}

absl::Status CublasProducts::Plan::SetLayouts(const MatmulCall& call) {
  const cudaDataType_t factor = call.type == MatmulCall::Type::kFloat32 ? CUDA_R_32F : CUDA_R_16BF;
  const cudaDataType_t sum = call.type == MatmulCall::Type::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
  const auto layout = [&](cudaDataType_t type, int64_t rows, int64_t columns, int64_t row,
                          int64_t step, cublasLtMatrixLayout_t* made) -> absl::Status {
    PIPELAB_RETURN_IF_ERROR(CublasStatus(cublasLtMatrixLayoutCreate(made, type, rows, columns, row),
                                         "cuBLASLt's layout"));
    if (call.batch == 1) return absl::OkStatus();
    const int32_t batch = static_cast<int32_t>(call.batch);
    PIPELAB_RETURN_IF_ERROR(
        CublasStatus(cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &batch, sizeof(batch)),
                     "cuBLASLt's batch"));
    return CublasStatus(
        cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                         sizeof(step)),
        "cuBLASLt's batch");
  };
  PIPELAB_RETURN_IF_ERROR(layout(factor, call.transpose_b ? call.k : call.n,
                                 call.transpose_b ? call.n : call.k, call.ldb(), call.step_b,
                                 &first));
  PIPELAB_RETURN_IF_ERROR(layout(factor, call.transpose_a ? call.m : call.k,
                                 call.transpose_a ? call.k : call.m, call.lda(), call.step_a,
                                 &second));
  return layout(sum, call.n, call.m, call.ldc(), call.step_c, &result);
}

absl::Status CublasProducts::Plan::SetPreference() {
  PIPELAB_RETURN_IF_ERROR(
      CublasStatus(cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt's preferences"));
  PIPELAB_RETURN_IF_ERROR(
      Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes));
  // Other ways round each slice of k to bfloat16 before the slices are added.
  PIPELAB_RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                              static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    PIPELAB_RETURN_IF_ERROR(Set(preference, attribute, static_cast<uint32_t>(kAlignment)));
  }
  return absl::OkStatus();
}

absl::Status CublasProducts::Plan::Choose(const MatmulCall& call, cublasLtHandle_t handle) {
  cublasLtMatmulHeuristicResult_t best;
  int count = 0;
  const cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(handle, desc, first, second, result,
                                                              result, preference, 1, &best, &count);
  // Where something follows the product, it can as well be a kernel of its own.
  if (asked != CUBLAS_STATUS_NOT_SUPPORTED && call.then == MatmulCall::Then::kNothing) {
    PIPELAB_RETURN_IF_ERROR(CublasStatus(asked, "cuBLASLt's choice of an algorithm"));
  }
  found = asked == CUBLAS_STATUS_SUCCESS && count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  if (found) algorithm = best.algo;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CublasProducts>> CublasProducts::Create(Precision precision) {
  auto products = absl::WrapUnique(new CublasProducts(precision));
  PIPELAB_RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&products->handle_), "cuBLASLt"));
  PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&products->workspace_, kWorkspaceBytes),
                                     "32 MiB of workspace for cuBLASLt"));
  return products;
}

CublasProducts::CublasProducts(Precision precision) : precision_(precision) {}

CublasProducts::~CublasProducts() {
  plans_.clear();
  if (workspace_ != nullptr) cudaFree(workspace_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

absl::StatusOr<CublasProducts::Plan*> CublasProducts::PlanOf(const MatmulCall& call) {
  const Key key = {static_cast<int64_t>(call.type),
                   static_cast<int64_t>(call.then),
                   call.transpose_a,
                   call.transpose_b,
                   call.add,
                   call.m,
                   call.n,
                   call.k,
                   call.batch,
                   call.step_a,
                   call.step_b,
                   call.step_c,
                   call.lda(),
                   call.ldb(),
                   call.ldc(),
                   call.bias != nullptr};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (plan != nullptr) return plan.get();
  auto made = std::make_unique<Plan>();
  PIPELAB_RETURN_IF_ERROR(made->Describe(call, precision_));
  PIPELAB_RETURN_IF_ERROR(made->SetLayouts(call));
  PIPELAB_RETURN_IF_ERROR(made->SetPreference());
  PIPELAB_RETURN_IF_ERROR(made->Choose(call, handle_));
  plan = std::move(made);
  return plan.get();
}

absl::Status CublasProducts::Run(const MatmulCall& call, cudaStream_t stream) {
  // Rows of `aux` must be a multiple of so many elements. With a bias, of others the library rounds
  // to bfloat16 before it adds that (seen on an H100).
  constexpr int64_t kRow = 8;
  const bool rounds_once = call.type != MatmulCall::Type::kBFloat16 || call.bias == nullptr;
  const bool fits = (!HasAux(call) && rounds_once) || call.n % kRow == 0;
  Plan* plan = nullptr;
  if (fits) {
    PIPELAB_ASSIGN_OR_RETURN(plan, PlanOf(call));
  }
  if (plan == nullptr || !plan->found) {
    return absl::UnimplementedError(
        absl::StrCat("cuBLASLt has no product ", call.m, "x", call.k, "x", call.n));
  }
  PIPELAB_RETURN_IF_ERROR(SetAddresses(call, plan->desc));
  const float alpha = static_cast<float>(call.scale), beta = call.add ? 1.0f : 0.0f;
  return CublasStatus(
      cublasLtMatmul(handle_, plan->desc, &alpha, call.b, plan->first, call.a, plan->second, &beta,
                     call.c, plan->result, call.c, plan->result, &plan->algorithm, workspace_,
                     kWorkspaceBytes, stream),
      absl::StrCat("a product ", call.m, "x", call.k, "x", call.n));
}

}  // namespace gpu
}  // namespace pipelab
