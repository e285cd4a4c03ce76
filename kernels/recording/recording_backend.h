// Which kernels a model calls, with what shapes, and what each took: another backend with a record
// of its calls.
//
//   Arena arena;
//   RecordingBackend backend(MakeCpuBackend(&arena));
//   layer->Forward(ctx, inputs, &stash);                   // ctx.backend = &backend
//   for (const KernelCall& call : backend.TakeCalls()) ... // call.kernel, call.shape, call.cpu_ns
//
// Times are processor time of the calling thread, with the clock's own call of some 250 ns in each.
// Flops are those of products, as operations state them (models/graph/operation.h); `numbers`
// counts each tensor of the call once.
#ifndef PIPELAB_KERNELS_RECORDING_RECORDING_BACKEND_H_
#define PIPELAB_KERNELS_RECORDING_RECORDING_BACKEND_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace pipelab {

struct KernelCall {
  const char* kernel = "";  // "LinearWeightGradient"
  std::string shape;        // "1024x256x768"
  double flops = 0;
  int64_t numbers = 0;  // elements of its tensors
  int64_t cpu_ns = 0;
};

// Where calls are noted, in order.
class CallRecord {
 public:
  using Tensors = std::initializer_list<const Tensor*>;
  void Note(const char* kernel, std::string shape, double flops, Tensors tensors,
            const std::function<void()>& call);
  // To the last call: those that its tensors do not say.
  void AddNumbers(int64_t numbers) { calls_.back().numbers += numbers; }
  std::vector<KernelCall> Take() { return std::exchange(calls_, {}); }

 private:
  std::vector<KernelCall> calls_;
};

class RecordingBackend final : public Backend {
 public:
  explicit RecordingBackend(std::unique_ptr<Backend> of);
  ~RecordingBackend() override;

  // All calls since the last time.
  std::vector<KernelCall> TakeCalls() { return record_.Take(); }
  // Shows the factors of every Linear, in front of it.
  using ProductObserver = std::function<void(const Tensor& x_MK, const Tensor& w_KN)>;
  void ObserveProducts(ProductObserver observer) { observer_ = std::move(observer); }

  absl::string_view name() const override { return of_->name(); }
  absl::Status Finish() override { return of_->Finish(); }
  int64_t library_ns() const override { return of_->library_ns(); }
  int64_t reorder_ns() const override { return of_->reorder_ns(); }

  AttentionKernels& attention() override { return *attention_; }
  BatchNormKernels& batch_norm() override { return *batch_norm_; }
  ConvolutionKernels& convolution() override { return *convolution_; }
  EmbeddingKernels& embedding() override { return *embedding_; }
  ExpertKernels& experts() override { return *experts_; }
  GraphKernels& graphs() override { return *graphs_; }
  QuantizedKernels& quantized() override { return *quantized_; }
  LossKernels& loss() override { return *loss_; }
  OptimizerKernels& optimizer() override { return *optimizer_; }
  PoolingKernels& pooling() override { return *pooling_; }

  void DoLinear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
                const Tensor& y_MN) override;
  void DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& dx_MK) override;
  void DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                              const Tensor& db_N) override;
  void DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) override;
  void DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                       const Tensor& dx_MK) override;
  void DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                        const Tensor& dw_NK) override;
  void DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) override;
  void DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                                const Tensor& mean_M, const Tensor& rstd_M,
                                const Tensor& dx_MC) override;
  void DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                                 const Tensor& rstd_M, const Tensor& dgamma_C,
                                 const Tensor& dbeta_C) override;
  void DoGelu(const Tensor& x, const Tensor& y, GeluForm form) override;
  void DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx, GeluForm form) override;
  void DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) override;
  void DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                      const Tensor& dgu_M2F) override;
  void DoRelu(const Tensor& x, const Tensor& y) override;
  void DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) override;
  void DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                    const Tensor& y) override;
  void DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) override;
  void DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void Fill(const Tensor& x, float value) override;
  void DoCopy(const Tensor& from, const Tensor& to) override;
  void DoCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                     int64_t to_column, int64_t columns) override;

 private:
  const std::unique_ptr<Backend> of_;
  CallRecord record_;
  ProductObserver observer_;
  const std::unique_ptr<AttentionKernels> attention_;
  const std::unique_ptr<BatchNormKernels> batch_norm_;
  const std::unique_ptr<ConvolutionKernels> convolution_;
  const std::unique_ptr<EmbeddingKernels> embedding_;
  const std::unique_ptr<ExpertKernels> experts_;
  const std::unique_ptr<GraphKernels> graphs_;
  const std::unique_ptr<QuantizedKernels> quantized_;
  const std::unique_ptr<LossKernels> loss_;
  const std::unique_ptr<OptimizerKernels> optimizer_;
  const std::unique_ptr<PoolingKernels> pooling_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_RECORDING_RECORDING_BACKEND_H_
