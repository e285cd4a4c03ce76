#include "kernels/recording/recording_backend.h"

#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/recording/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

int64_t ThreadCpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

double MatmulFlops(const MatmulSize& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}
std::string MatmulText(const MatmulSize& s) { return absl::StrCat(s.m, "x", s.k, "x", s.n); }

}  // namespace

void CallRecord::Note(const char* kernel, std::string shape, double flops, Tensors tensors,
                      const std::function<void()>& call) {
  KernelCall c;
  c.kernel = kernel;
  c.shape = std::move(shape);
  c.flops = flops;
  for (const Tensor* t : tensors) c.numbers += t->size();
  const int64_t begin = ThreadCpuNs();
  call();
  c.cpu_ns = ThreadCpuNs() - begin;
  calls_.push_back(std::move(c));
}

RecordingBackend::RecordingBackend(std::unique_ptr<Backend> of)
    : Backend(&of->arena(), of->activation_type()),
      of_(std::move(of)),
      attention_(RecordAttention(&of_->attention(), &record_)),
      batch_norm_(RecordBatchNorm(&of_->batch_norm(), &record_)),
      convolution_(RecordConvolution(&of_->convolution(), &record_)),
      embedding_(RecordEmbedding(&of_->embedding(), &record_)),
      experts_(RecordExperts(&of_->experts(), &record_)),
      graphs_(RecordGraphs(&of_->graphs(), &record_)),
      quantized_(RecordQuantized(&of_->quantized(), &record_)),
      loss_(RecordLoss(&of_->loss(), &record_)),
      optimizer_(RecordOptimizer(&of_->optimizer(), &record_)),
      pooling_(RecordPooling(&of_->pooling(), &record_)) {}

RecordingBackend::~RecordingBackend() = default;

void RecordingBackend::DoLinear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
                                const Tensor& y_MN) {
  if (observer_) observer_(x_MK, w_KN);
  const MatmulSize s = MatmulOf(x_MK, y_MN);
  record_.Note("Linear", MatmulText(s), MatmulFlops(s), {&x_MK, &w_KN, &b_N, &y_MN},
               [&] { of_->Linear(x_MK, w_KN, b_N, y_MN); });
}

void RecordingBackend::DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                                             const Tensor& dx_MK) {
  const MatmulSize s = MatmulOf(dx_MK, dy_MN);
  record_.Note("LinearInputGradient", MatmulText(s), MatmulFlops(s), {&dy_MN, &w_KN, &dx_MK},
               [&] { of_->LinearInputGradient(dy_MN, w_KN, dx_MK); });
}

void RecordingBackend::DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                              const Tensor& dw_KN, const Tensor& db_N) {
  const MatmulSize s = MatmulOf(x_MK, dy_MN);
  record_.Note("LinearWeightGradient", MatmulText(s), MatmulFlops(s),
               {&x_MK, &dy_MN, &dw_KN, &db_N},
               [&] { of_->LinearWeightGradient(x_MK, dy_MN, dw_KN, db_N); });
}

void RecordingBackend::DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK,
                                          const Tensor& y_MN) {
  const MatmulSize s = MatmulOf(x_MK, y_MN);
  record_.Note("LinearTransposed", MatmulText(s), MatmulFlops(s), {&x_MK, &w_NK, &y_MN},
               [&] { of_->LinearTransposed(x_MK, w_NK, y_MN); });
}

void RecordingBackend::DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                                       const Tensor& dx_MK) {
  const MatmulSize s = MatmulOf(dx_MK, dy_MN);
  record_.Note("LinearTransposedInputGradient", MatmulText(s), MatmulFlops(s),
               {&dy_MN, &w_NK, &dx_MK},
               [&] { of_->LinearTransposedInputGradient(dy_MN, w_NK, dx_MK); });
}

void RecordingBackend::DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                                        const Tensor& dw_NK) {
  const MatmulSize s = MatmulOf(x_MK, dy_MN);
  record_.Note("LinearTransposedWeightGradient", MatmulText(s), MatmulFlops(s),
               {&x_MK, &dy_MN, &dw_NK},
               [&] { of_->LinearTransposedWeightGradient(x_MK, dy_MN, dw_NK); });
}

void RecordingBackend::DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                                   const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) {
  record_.Note("LayerNorm", RowsText(x_MC), 0, {&x_MC, &y_MC},
               [&] { of_->LayerNorm(x_MC, gamma_C, beta_C, y_MC, mean_M, rstd_M); });
}

void RecordingBackend::DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC,
                                                const Tensor& gamma_C, const Tensor& mean_M,
                                                const Tensor& rstd_M, const Tensor& dx_MC) {
  record_.Note("LayerNormInputGradient", RowsText(x_MC), 0, {&dy_MC, &x_MC, &dx_MC},
               [&] { of_->LayerNormInputGradient(dy_MC, x_MC, gamma_C, mean_M, rstd_M, dx_MC); });
}

void RecordingBackend::DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC,
                                                 const Tensor& mean_M, const Tensor& rstd_M,
                                                 const Tensor& dgamma_C, const Tensor& dbeta_C) {
  record_.Note("LayerNormWeightGradient", RowsText(x_MC), 0, {&dy_MC, &x_MC}, [&] {
    of_->LayerNormWeightGradient(dy_MC, x_MC, mean_M, rstd_M, dgamma_C, dbeta_C);
  });
}

void RecordingBackend::DoGelu(const Tensor& x, const Tensor& y, GeluForm form) {
  record_.Note("Gelu", RowsText(x), 0, {&x, &y}, [&] { of_->Gelu(x, y, form); });
}

void RecordingBackend::DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx,
                                      GeluForm form) {
  record_.Note("GeluGradient", RowsText(x), 0, {&dy, &x, &dx},
               [&] { of_->GeluGradient(dy, x, dx, form); });
}

void RecordingBackend::DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) {
  record_.Note("Gate", RowsText(y_MF), 0, {&gu_M2F, &y_MF}, [&] { of_->Gate(kind, gu_M2F, y_MF); });
}

void RecordingBackend::DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                                      const Tensor& dgu_M2F) {
  record_.Note("GateGradient", RowsText(dy_MF), 0, {&dy_MF, &gu_M2F, &dgu_M2F},
               [&] { of_->GateGradient(kind, dy_MF, gu_M2F, dgu_M2F); });
}

void RecordingBackend::DoRelu(const Tensor& x, const Tensor& y) {
  record_.Note("Relu", RowsText(x), 0, {&x, &y}, [&] { of_->Relu(x, y); });
}

void RecordingBackend::DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) {
  record_.Note("ReluGradient", RowsText(y), 0, {&dy, &y, &dx},
               [&] { of_->ReluGradient(dy, y, dx); });
}

void RecordingBackend::DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                                    const Tensor& y) {
  record_.Note("AddDropout", RowsText(a), 0, {&a, &b, &y}, [&] { of_->AddDropout(a, b, mask, y); });
}

void RecordingBackend::DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  record_.Note("Dropout", RowsText(x), 0, {&x, &y}, [&] { of_->Dropout(x, mask, y); });
}

void RecordingBackend::DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) {
  record_.Note("Add", RowsText(a), 0, {&a, &b, &y}, [&] { of_->Add(a, b, y); });
}

void RecordingBackend::Fill(const Tensor& x, float value) {
  record_.Note("Fill", RowsText(x), 0, {&x}, [&] { of_->Fill(x, value); });
}

void RecordingBackend::DoCopy(const Tensor& from, const Tensor& to) {
  record_.Note("Copy", RowsText(from), 0, {&from, &to}, [&] { of_->Copy(from, to); });
}

void RecordingBackend::DoCopyColumns(const Tensor& from_MC, int64_t from_column,
                                     const Tensor& to_MD, int64_t to_column, int64_t columns) {
  const int64_t rows = RowsOf(from_MC).rows;
  record_.Note("CopyColumns", absl::StrCat(rows, "x", columns), 0, {},
               [&] { of_->CopyColumns(from_MC, from_column, to_MD, to_column, columns); });
  record_.AddNumbers(2 * rows * columns);
}

}  // namespace pipelab
