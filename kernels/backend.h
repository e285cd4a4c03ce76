// The kernels that layers are made of, behind one interface. `reference` says in plain loops what
// is right; `cpu` is oneDNN; `cuda` is cuBLASLt, cuDNN and own kernels on a GPU.
//
//   std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
//   Tensor y_MN = backend->Allocate({m, n});
//   backend->Linear(x_MK, w_KN, b_N, y_MN);
//
// Rules for every kernel:
//  * Row-major; all outputs are allocated by the caller.
//  * Activations, their gradients and the parameters that they meet are of one type,
//    activation_type(): float32 or, on devices that have it, bfloat16. Arithmetic and sums are in
//    float32, and a result is rounded once. Gradients of parameters, statistics (mean, rstd, lse,
//    what loss kernels keep of rows), targets and all that an optimizer has are float32.
//  * Input gradient and weight gradient are separate calls, because schedules split the backward
//    pass.
//  * Weight gradients are *added* to dw: micro-batches accumulate in the order in which they come.
//  * A shape that does not fit is a broken invariant (CHECK): the public functions check, the same
//    for all backends, and call the backend's Do function. Faults of a device are reported by
//    Finish().
//  * The same call on the same data gives the same bits, whatever the addresses and whatever ran
//    before.
// A backend belongs to one device and its thread.
#ifndef PIPELAB_KERNELS_BACKEND_H_
#define PIPELAB_KERNELS_BACKEND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/attention_kernels.h"
#include "kernels/batch_norm_kernels.h"
#include "kernels/convolution_kernels.h"
#include "kernels/embedding_kernels.h"
#include "kernels/expert_kernels.h"
#include "kernels/gate_kind.h"  // IWYU pragma: export
#include "kernels/graph_kernels.h"
#include "kernels/loss_kernels.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/pooling_kernels.h"
#include "kernels/quantized_kernels.h"
#include "kernels/shape_checks.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "tools/base/rng.h"

namespace pipelab {

// Dropout keeps element i of a tensor when rng.Uniform(offset + i) >= rate, and scales it by 1 / (1
// - rate). The mask is never stored: backward draws it again.
struct DropoutMask {
  float rate = 0;
  CounterRng rng{0, uint64_t{0}};
  uint64_t offset = 0;
};

class Backend {
 public:
  explicit Backend(Arena* arena, DataType activations = DataType::kFloat32)
      : arena_(arena), activation_type_(activations) {}
  virtual ~Backend() = default;

  virtual absl::string_view name() const = 0;
  Arena& arena() { return *arena_; }
  DataType activation_type() const { return activation_type_; }
  // An activation or a gradient of one; and statistics.
  Tensor Allocate(Shape shape, MemoryKind kind = MemoryKind::kActivation) {
    return arena_->Allocate(activation_type_, std::move(shape), kind);
  }
  Tensor AllocateFloats(Shape shape, MemoryKind kind = MemoryKind::kActivation) {
    return arena_->Allocate(DataType::kFloat32, std::move(shape), kind);
  }

  // Groups of kernels with interfaces of their own.
  virtual AttentionKernels& attention() = 0;
  virtual BatchNormKernels& batch_norm() = 0;
  virtual ConvolutionKernels& convolution() = 0;
  virtual EmbeddingKernels& embedding() = 0;
  virtual ExpertKernels& experts() = 0;
  virtual GraphKernels& graphs() = 0;
  virtual LossKernels& loss() = 0;
  virtual OptimizerKernels& optimizer() = 0;
  virtual PoolingKernels& pooling() = 0;
  virtual QuantizedKernels& quantized() = 0;

  // y = x w (+ b where b_N is not empty).
  void Linear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N, const Tensor& y_MN) {
    CheckMatmul("Linear", x_MK, w_KN, y_MN, b_N);
    DoLinear(x_MK, w_KN, b_N, y_MN);
  }
  void LinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& dx_MK) {
    CheckMatmul("LinearInputGradient", dx_MK, w_KN, dy_MN, Tensor());
    DoLinearInputGradient(dy_MN, w_KN, dx_MK);
  }
  // dw += x^T dy; db += column sums of dy where db_N is not empty.
  void LinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                            const Tensor& db_N) {
    CheckMatmul("LinearWeightGradient", x_MK, dw_KN, dy_MN, db_N);
    DoLinearWeightGradient(x_MK, dy_MN, dw_KN, db_N);
  }
  // The same with the weight stored as [N, K] (a tied embedding table used as the output
  // projection).
  void LinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) {
    CheckMatmulTransposed("LinearTransposed", x_MK, w_NK, y_MN);
    DoLinearTransposed(x_MK, w_NK, y_MN);
  }
  void LinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK, const Tensor& dx_MK) {
    CheckMatmulTransposed("LinearTransposedInputGradient", dx_MK, w_NK, dy_MN);
    DoLinearTransposedInputGradient(dy_MN, w_NK, dx_MK);
  }
  void LinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                      const Tensor& dw_NK) {
    CheckMatmulTransposed("LinearTransposedWeightGradient", x_MK, dw_NK, dy_MN);
    DoLinearTransposedWeightGradient(x_MK, dy_MN, dw_NK);
  }

  // y = (x - mean) rstd gamma + beta over the last dimension; epsilon 1e-5. Keeps mean_M and
  // rstd_M. Without beta_C and mean_M (empty tensors) the mean is 0, which makes it an RMS norm
  // (Zhang and Sennrich, NeurIPS 2019); and so in its gradients.
  void LayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) {
    CheckRows("LayerNorm", {&x_MC, &y_MC}, {&gamma_C}, {&rstd_M});
    CheckCentering("LayerNorm", RowsOf(x_MC), beta_C, mean_M);
    DoLayerNorm(x_MC, gamma_C, beta_C, y_MC, mean_M, rstd_M);
  }
  void LayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                              const Tensor& mean_M, const Tensor& rstd_M, const Tensor& dx_MC) {
    CheckRows("LayerNormInputGradient", {&dy_MC, &x_MC, &dx_MC}, {&gamma_C}, {&rstd_M});
    if (!mean_M.empty()) CheckRows("LayerNormInputGradient", {&x_MC}, {}, {&mean_M});
    DoLayerNormInputGradient(dy_MC, x_MC, gamma_C, mean_M, rstd_M, dx_MC);
  }
  void LayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                               const Tensor& rstd_M, const Tensor& dgamma_C,
                               const Tensor& dbeta_C) {
    CheckRows("LayerNormWeightGradient", {&dy_MC, &x_MC}, {&dgamma_C}, {&rstd_M});
    CheckCentering("LayerNormWeightGradient", RowsOf(x_MC), dbeta_C, mean_M);
    DoLayerNormWeightGradient(dy_MC, x_MC, mean_M, rstd_M, dgamma_C, dbeta_C);
  }

  void Gelu(const Tensor& x, const Tensor& y, GeluForm form = GeluForm::kTanh) {  // y may be x
    CheckSameSize("Gelu", {&x, &y});
    DoGelu(x, y, form);
  }
  void GeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx,  // dx may be dy
                    GeluForm form = GeluForm::kTanh) {
    CheckSameSize("GeluGradient", {&dy, &x, &dx});
    DoGeluGradient(dy, x, dx, form);
  }

  // Gated linear units (Shazeer, arXiv 2002.05202): y = act(g) u, where a row has g and u side by
  // side.
  void Gate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) {
    CheckGate("Gate", gu_M2F, y_MF);
    DoGate(kind, gu_M2F, y_MF);
  }
  void GateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                    const Tensor& dgu_M2F) {  // dgu may be gu
    CheckGate("GateGradient", gu_M2F, dy_MF);
    CheckGate("GateGradient", dgu_M2F, dy_MF);
    DoGateGradient(kind, dy_MF, gu_M2F, dgu_M2F);
  }

  // h = x w (+ b), y = gelu(h), tanh form: a linear layer and what follows it, in one kernel where
  // a library has that. h and y are two tensors.
  void LinearGelu(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N, const Tensor& h_MN,
                  const Tensor& y_MN) {
    CheckMatmul("LinearGelu", x_MK, w_KN, h_MN, b_N);
    CheckSameSize("LinearGelu", {&h_MN, &y_MN});
    DoLinearGelu(x_MK, w_KN, b_N, h_MN, y_MN);
  }
  // The gradient of h, of a linear layer y = gelu(h) w: dh = (dy w^T) gelu'(h).
  void LinearGeluInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& h_MK,
                               const Tensor& dh_MK) {
    CheckMatmul("LinearGeluInputGradient", dh_MK, w_KN, dy_MN, Tensor());
    CheckSameSize("LinearGeluInputGradient", {&h_MK, &dh_MK});
    DoLinearGeluInputGradient(dy_MN, w_KN, h_MK, dh_MK);
  }

  // y = max(x, 0); NaN stays. The gradient needs the result alone: dx = dy where y > 0.
  void Relu(const Tensor& x, const Tensor& y) {  // y may be x
    CheckSameSize("Relu", {&x, &y});
    DoRelu(x, y);
  }
  void ReluGradient(const Tensor& dy, const Tensor& y,
                    const Tensor& dx) {  // dx may be dy or y
    CheckSameSize("ReluGradient", {&dy, &y, &dx});
    DoReluGradient(dy, y, dx);
  }

  // y = a + dropout(b). With rate 0 a plain sum. y may be a or b.
  void AddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask, const Tensor& y) {
    CheckSameSize("AddDropout", {&a, &b, &y});
    CheckDropoutRate("AddDropout", mask.rate);
    DoAddDropout(a, b, mask, y);
  }
  // y = dropout(x) with the same mask: the gradient of the branch, and dropout alone. y may be x.
  void Dropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
    CheckSameSize("Dropout", {&x, &y});
    CheckDropoutRate("Dropout", mask.rate);
    DoDropout(x, mask, y);
  }
  // y may be a or b. Floats may take bfloat16 numbers b.
  void Add(const Tensor& a, const Tensor& b, const Tensor& y) {
    CheckSameSize("Add", {&a, &b, &y});
    DoAdd(a, b, y);
  }

  virtual void Fill(const Tensor& x, float value) = 0;
  // Between types too: rounded to bfloat16, or widened.
  void Copy(const Tensor& from, const Tensor& to) {
    CheckSameSize("Copy", {&from, &to});
    DoCopy(from, to);
  }
  // Columns [from_column, from_column + columns) of every row go to columns from `to_column` on:
  // concatenation and split by channels. No overlap. Floats may go to bfloat16.
  void CopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                   int64_t to_column, int64_t columns) {
    CheckCopyColumns(from_MC, from_column, to_MD, to_column, columns);
    DoCopyColumns(from_MC, from_column, to_MD, to_column, columns);
  }

  // Waits for queued work; reports a device fault.
  virtual absl::Status Finish() { return absl::OkStatus(); }
  // Nanoseconds spent inside the vendor library so far.
  virtual int64_t library_ns() const { return 0; }
  // The part of these that copied weights into the library's own layout and back.
  virtual int64_t reorder_ns() const { return 0; }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoLinear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
                        const Tensor& y_MN) = 0;
  virtual void DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                                     const Tensor& dx_MK) = 0;
  virtual void DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                                      const Tensor& db_N) = 0;
  virtual void DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) = 0;
  virtual void DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                               const Tensor& dx_MK) = 0;
  virtual void DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                                const Tensor& dw_NK) = 0;
  virtual void DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                           const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) = 0;
  virtual void DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC,
                                        const Tensor& gamma_C, const Tensor& mean_M,
                                        const Tensor& rstd_M, const Tensor& dx_MC) = 0;
  virtual void DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC,
                                         const Tensor& mean_M, const Tensor& rstd_M,
                                         const Tensor& dgamma_C, const Tensor& dbeta_C) = 0;
  virtual void DoGelu(const Tensor& x, const Tensor& y, GeluForm form) = 0;
  virtual void DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx,
                              GeluForm form) = 0;
  virtual void DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) = 0;
  virtual void DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                              const Tensor& dgu_M2F) = 0;
  virtual void DoLinearGelu(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
                            const Tensor& h_MN, const Tensor& y_MN) {
    Linear(x_MK, w_KN, b_N, h_MN);
    Gelu(h_MN, y_MN);
  }
  virtual void DoLinearGeluInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                                         const Tensor& h_MK, const Tensor& dh_MK) {
    LinearInputGradient(dy_MN, w_KN, dh_MK);
    GeluGradient(dh_MK, h_MK, dh_MK);
  }
  virtual void DoRelu(const Tensor& x, const Tensor& y) = 0;
  virtual void DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) = 0;
  virtual void DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                            const Tensor& y) = 0;
  virtual void DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) = 0;
  virtual void DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  virtual void DoCopy(const Tensor& from, const Tensor& to) = 0;
  virtual void DoCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                             int64_t to_column, int64_t columns) = 0;

  Arena* arena_;
  DataType activation_type_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_BACKEND_H_
