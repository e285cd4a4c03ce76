#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/recording/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {

std::string RowsText(const Tensor& x) {
  const RowsSize s = RowsOf(x);
  return absl::StrCat(s.rows, "x", s.columns);
}

namespace {

// What products are taken over: all keys for each query, also where causal ones see the first only,
// as published counts do.
double Pairs(const AttentionShape& s) {
  return static_cast<double>(s.samples) * static_cast<double>(s.num_queries()) *
         static_cast<double>(s.num_keys());
}
std::string Text(const AttentionShape& s) {
  return absl::StrCat(s.samples, "x", s.num_queries(), "x", s.num_keys(), "/", s.heads, "x",
                      s.head_size, s.causal ? "/causal" : "");
}
std::string Text(const CrossAttentionShape& s) {
  return absl::StrCat(s.samples, "x", s.queries, "x", s.keys, "/", s.heads, "x", s.head_size,
                      s.causal ? "/causal" : "");
}
double Pairs(const CrossAttentionShape& s) {
  return static_cast<double>(s.samples) * static_cast<double>(s.queries) *
         static_cast<double>(s.causal ? s.first_query + s.queries : s.keys);
}
// The flops of products with all pairs: so many of queries and keys, and of values.
double AttentionFlops(const AttentionShape& s, int of_keys, int of_values) {
  return 2.0 * (of_keys + of_values) * Pairs(s) * static_cast<double>(s.heads * s.head_size);
}
double AttentionFlops(const CrossAttentionShape& s, int of_keys, int of_values) {
  return 2.0 * Pairs(s) * static_cast<double>(of_keys * s.width() + of_values * s.out_width());
}

std::string Text(const ConvolutionShape& s) {
  std::string text = absl::StrCat(s.samples, "x", s.height, "x", s.width, "x", s.in_channels, "->",
                                  s.out_channels, "/", s.kernel_height, "x", s.kernel_width);
  if (s.stride_height * s.stride_width > 1) {
    absl::StrAppend(&text, "/stride", s.stride_height, "x", s.stride_width);
  }
  if (s.depthwise) absl::StrAppend(&text, "/depthwise");
  return text;
}
std::string Text(const PoolingShape& s) {
  return absl::StrCat(s.samples, "x", s.height, "x", s.width, "x", s.channels, "/", s.kernel_height,
                      "x", s.kernel_width, "/stride", s.stride_height);
}

class RecordedAttention final : public AttentionKernels {
 public:
  RecordedAttention(AttentionKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoForward(const AttentionShape& s, const Tensor& qkv, const Tensor& out,
                 const Tensor& lse) override {
    record_->Note("Attention", Text(s), AttentionFlops(s, 1, 1), {&qkv, &out},
                  [&] { of_->Forward(s, qkv, out, lse); });
  }
  void DoGradient(const AttentionShape& s, const Tensor& dout, const Tensor& qkv, const Tensor& out,
                  const Tensor& lse, const Tensor& dqkv) override {
    record_->Note("AttentionGradient", Text(s), AttentionFlops(s, 3, 2), {&dout, &qkv, &out, &dqkv},
                  [&] { of_->Gradient(s, dout, qkv, out, lse, dqkv); });
  }
  void DoRotate(const RotaryShape& s, bool back, const Tensor& x) override {
    record_->Note("Rotate", absl::StrCat(s.samples * s.tokens, "x", s.width()), 0, {},
                  [&] { of_->Rotate(s, back, x); });
    record_->AddNumbers(2 * s.samples * s.tokens * s.width());
  }
  void DoShareHead(const Tensor& x, const Tensor& y) override {
    record_->Note("ShareHead", absl::StrCat(RowsOf(y).rows, "x", RowsOf(x).columns), 0, {&x},
                  [&] { of_->ShareHead(x, y); });
    record_->AddNumbers(RowsOf(y).rows * RowsOf(x).columns);
  }
  void DoShareHeadGradient(const Tensor& dy, const Tensor& dx) override {
    record_->Note("ShareHeadGradient", absl::StrCat(RowsOf(dy).rows, "x", RowsOf(dx).columns), 0,
                  {&dx}, [&] { of_->ShareHeadGradient(dy, dx); });
    record_->AddNumbers(RowsOf(dy).rows * RowsOf(dx).columns);
  }
  void DoMerge(const Tensor& part, const Tensor& part_lse, const Tensor& out,
               const Tensor& lse) override {
    record_->Note("MergeAttention", absl::StrCat(RowsOf(part).rows, "x", RowsOf(part).columns), 0,
                  {&part, &out}, [&] { of_->Merge(part, part_lse, out, lse); });
  }
  void DoCrossForward(const CrossAttentionShape& s, const Tensor& q, const Tensor& kv,
                      const Tensor& out, const Tensor& lse) override {
    record_->Note("CrossAttention", Text(s), AttentionFlops(s, 1, 1), {&q, &kv, &out},
                  [&] { of_->CrossForward(s, q, kv, out, lse); });
  }
  void DoCrossGradient(const CrossAttentionShape& s, const Tensor& dout, const Tensor& q,
                       const Tensor& kv, const Tensor& out, const Tensor& lse, const Tensor& dq,
                       const Tensor& dkv) override {
    record_->Note("CrossAttentionGradient", Text(s), AttentionFlops(s, 3, 2),
                  {&dout, &q, &kv, &out, &dq, &dkv},
                  [&] { of_->CrossGradient(s, dout, q, kv, out, lse, dq, dkv); });
  }

 private:
  AttentionKernels* const of_;
  CallRecord* const record_;
};

class RecordedBatchNorm final : public BatchNormKernels {
 public:
  RecordedBatchNorm(BatchNormKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoForward(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y,
                 const Tensor& mean, const Tensor& variance) override {
    record_->Note("BatchNorm", RowsText(x), 0, {&x, &y},
                  [&] { of_->Forward(x, gamma, beta, y, mean, variance); });
  }
  void DoInputGradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                       const Tensor& variance, const Tensor& dx, const Tensor& dgamma_part,
                       const Tensor& dbeta_part) override {
    record_->Note("BatchNormInputGradient", RowsText(x), 0, {&dy, &x, &dx}, [&] {
      of_->InputGradient(dy, x, gamma, mean, variance, dx, dgamma_part, dbeta_part);
    });
  }
  void DoStatistics(const Tensor& x, const Tensor& mean, const Tensor& variance) override {
    record_->Note("BatchNormStatistics", RowsText(x), 0, {&x},
                  [&] { of_->Statistics(x, mean, variance); });
  }
  void DoGradientSums(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& variance,
                      const Tensor& dgamma_part, const Tensor& dbeta_part) override {
    record_->Note("BatchNormGradientSums", RowsText(x), 0, {&dy, &x},
                  [&] { of_->GradientSums(dy, x, mean, variance, dgamma_part, dbeta_part); });
  }
  void DoInputGradientOfSums(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                             const Tensor& mean, const Tensor& variance, const RowSums& sums,
                             const Tensor& dx) override {
    record_->Note("BatchNormInputGradientOfSums", RowsText(x), 0, {&dy, &x, &dx},
                  [&] { of_->InputGradientOfSums(dy, x, gamma, mean, variance, sums, dx); });
  }
  void DoWeightGradient(const Tensor& dgamma_part, const Tensor& dbeta_part, const Tensor& dgamma,
                        const Tensor& dbeta) override {
    record_->Note("BatchNormWeightGradient", RowsText(dgamma), 0,
                  {&dgamma_part, &dbeta_part, &dgamma, &dbeta},
                  [&] { of_->WeightGradient(dgamma_part, dbeta_part, dgamma, dbeta); });
  }
  void DoInference(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                   const Tensor& variance, const Tensor& y) override {
    record_->Note("BatchNormInference", RowsText(x), 0, {&x, &y},
                  [&] { of_->Inference(x, gamma, beta, mean, variance, y); });
  }
  void DoUpdateRunning(const Tensor& statistics, absl::Span<const int64_t> rows, float momentum,
                       const Tensor& mean, const Tensor& variance) override {
    record_->Note("BatchNormUpdateRunning", RowsText(statistics), 0, {&statistics},
                  [&] { of_->UpdateRunning(statistics, rows, momentum, mean, variance); });
  }

 private:
  BatchNormKernels* const of_;
  CallRecord* const record_;
};

class RecordedConvolution final : public ConvolutionKernels {
 public:
  RecordedConvolution(ConvolutionKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoForward(const ConvolutionShape& s, const Tensor& x, const Tensor& w, const Tensor& b,
                 const Tensor& y) override {
    record_->Note("Convolution", Text(s), s.flops(), {&x, &w, &b, &y},
                  [&] { of_->Forward(s, x, w, b, y); });
  }
  void DoInputGradient(const ConvolutionShape& s, const Tensor& dy, const Tensor& w,
                       const Tensor& dx) override {
    record_->Note("ConvolutionInputGradient", Text(s), s.flops(), {&dy, &w, &dx},
                  [&] { of_->InputGradient(s, dy, w, dx); });
  }
  void DoWeightGradient(const ConvolutionShape& s, const Tensor& x, const Tensor& dy,
                        const Tensor& dw, const Tensor& db) override {
    record_->Note("ConvolutionWeightGradient", Text(s), s.flops(), {&x, &dy, &dw, &db},
                  [&] { of_->WeightGradient(s, x, dy, dw, db); });
  }

 private:
  ConvolutionKernels* const of_;
  CallRecord* const record_;
};

class RecordedEmbedding final : public EmbeddingKernels {
 public:
  RecordedEmbedding(EmbeddingKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoLookup(const Tensor& tokens, const Tensor& table, const Tensor& positions,
                const Tensor& y) override {
    record_->Note("Lookup", RowsText(y), 0, {&y, &y, &y},
                  [&] { of_->Lookup(tokens, table, positions, y); });
  }
  void DoLookupWeightGradient(const Tensor& tokens, const Tensor& dy, const Tensor& dtable,
                              const Tensor& dpositions) override {
    record_->Note("LookupWeightGradient", RowsText(dy), 0, {&dy, &dy, &dy, &dy, &dy},
                  [&] { of_->LookupWeightGradient(tokens, dy, dtable, dpositions); });
  }
  void DoLookupPart(const Tensor& tokens, int64_t first, const Tensor& table,
                    const Tensor& positions, const Tensor& y) override {
    record_->Note("LookupPart", RowsText(y), 0, {&y, &y, &y},
                  [&] { of_->LookupPart(tokens, first, table, positions, y); });
  }
  void DoLookupPartWeightGradient(const Tensor& tokens, int64_t first, const Tensor& dy,
                                  const Tensor& dtable, const Tensor& dpositions) override {
    record_->Note("LookupPartWeightGradient", RowsText(dy), 0, {&dy, &dy, &dy},
                  [&] { of_->LookupPartWeightGradient(tokens, first, dy, dtable, dpositions); });
  }
  void DoBag(const Tensor& ids, const Tensor& table, BagMode mode, const Tensor& y) override {
    record_->Note("Bag", RowsText(y), 0, {&y, &y}, [&] { of_->Bag(ids, table, mode, y); });
  }
  void DoBagWeightGradient(const Tensor& ids, const Tensor& dy, BagMode mode,
                           const Tensor& dtable) override {
    record_->Note("BagWeightGradient", RowsText(dy), 0, {&dy, &dy, &dy},
                  [&] { of_->BagWeightGradient(ids, dy, mode, dtable); });
  }

 private:
  EmbeddingKernels* const of_;
  CallRecord* const record_;
};

class RecordedExperts final : public ExpertKernels {
 public:
  RecordedExperts(ExpertKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoRoute(const RouterShape& s, const Tensor& logits, const Routing& r) override {
    record_->Note("Route", RowsText(logits), 0,
                  {&logits, &r.weights_MK, &r.experts_MK, &r.places_MK},
                  [&] { of_->Route(s, logits, r); });
  }
  void DoRouteGradient(const RouterShape& s, const Tensor& dweights, const Tensor& logits,
                       const Routing& r, float balance, const Tensor& dlogits) override {
    record_->Note("RouteGradient", RowsText(logits), 0,
                  {&logits, &r.weights_MK, &r.experts_MK, &dweights, &dlogits},
                  [&] { of_->RouteGradient(s, dweights, logits, r, balance, dlogits); });
  }
  void DoGather(const Routing& r, const Tensor& x, const Tensor& all) override {
    record_->Note("Gather", RowsText(all), 0, {&all, &all}, [&] { of_->Gather(r, x, all); });
  }
  void DoSumOfChoices(const Routing& r, const Tensor& all, const Tensor& y) override {
    record_->Note("SumOfChoices", RowsText(all), 0, {&all, &y},
                  [&] { of_->SumOfChoices(r, all, y); });
  }
  void DoWeigh(const Routing& r, const Tensor& x) override {
    record_->Note("Weigh", RowsText(x), 0, {&x, &x}, [&] { of_->Weigh(r, x); });
  }
  void DoWeighGradient(const Routing& r, const Tensor& x, const Tensor& dy,
                       const Tensor& dweights) override {
    record_->Note("WeighGradient", RowsText(x), 0, {&x, &dy, &dy, &dweights},
                  [&] { of_->WeighGradient(r, x, dy, dweights); });
  }
  void DoProduct(const Routing& r, const Tensor& x, const Tensor& w, const Tensor& y) override {
    NoteProduct("Product", x, w, y, [&] { of_->Product(r, x, w, y); });
  }
  void DoProductInputGradient(const Routing& r, const Tensor& dy, const Tensor& w,
                              const Tensor& dx) override {
    NoteProduct("ProductInputGradient", dx, w, dy,
                [&] { of_->ProductInputGradient(r, dy, w, dx); });
  }
  void DoProductWeightGradient(const Routing& r, const Tensor& x, const Tensor& dy,
                               const Tensor& dw) override {
    NoteProduct("ProductWeightGradient", x, dw, dy,
                [&] { of_->ProductWeightGradient(r, x, dy, dw); });
  }

 private:
  // The product is of all rows, also where a capacity drops some.
  void NoteProduct(const char* kernel, const Tensor& x, const Tensor& w, const Tensor& y,
                   const std::function<void()>& call) {
    const MatmulSize s = MatmulOf(x, y);
    const double flops =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    record_->Note(kernel, absl::StrCat(s.m, "x", s.k, "x", s.n, "/", w.dim(0), "experts"), flops,
                  {&x, &w, &y}, call);
  }

  ExpertKernels* const of_;
  CallRecord* const record_;
};

class RecordedLoss final : public LossKernels {
 public:
  RecordedLoss(LossKernels* of, CallRecord* record) : of_(of), record_(record) {}
  double DoCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    double loss = 0;
    record_->Note("CrossEntropy", RowsText(logits), 0, {&logits},
                  [&] { loss = of_->CrossEntropy(logits, targets); });
    return loss;
  }
  void DoCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                              const Tensor& dlogits) override {
    record_->Note("CrossEntropyGradient", RowsText(logits), 0, {&logits, &dlogits},
                  [&] { of_->CrossEntropyGradient(logits, targets, scale, dlogits); });
  }
  void DoLargestLogits(const Tensor& logits, const Tensor& most) override {
    record_->Note("LargestLogits", RowsText(logits), 0, {&logits},
                  [&] { of_->LargestLogits(logits, most); });
  }
  void DoSoftmaxSums(const Tensor& logits, const Tensor& targets, int64_t first, const Tensor& most,
                     const Tensor& sums, const Tensor& target_logits) override {
    record_->Note("SoftmaxSums", RowsText(logits), 0, {&logits},
                  [&] { of_->SoftmaxSums(logits, targets, first, most, sums, target_logits); });
  }
  double DoCrossEntropyOfSums(const Tensor& targets, const Tensor& sums,
                              const Tensor& target_logits, const Tensor& most) override {
    double loss = 0;
    record_->Note("CrossEntropyOfSums", RowsText(sums), 0, {&sums, &target_logits, &most},
                  [&] { loss = of_->CrossEntropyOfSums(targets, sums, target_logits, most); });
    return loss;
  }
  void DoCrossEntropyPartGradient(const Tensor& logits, const Tensor& targets, int64_t first,
                                  const Tensor& lse, float scale, const Tensor& dlogits) override {
    record_->Note("CrossEntropyPartGradient", RowsText(logits), 0, {&logits, &dlogits}, [&] {
      of_->CrossEntropyPartGradient(logits, targets, first, lse, scale, dlogits);
    });
  }
  double DoSquaredError(const Tensor& y, const Tensor& targets) override {
    double loss = 0;
    record_->Note("SquaredError", RowsText(y), 0, {&y, &targets},
                  [&] { loss = of_->SquaredError(y, targets); });
    return loss;
  }
  void DoSquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                              const Tensor& dy) override {
    record_->Note("SquaredErrorGradient", RowsText(y), 0, {&y, &targets, &dy},
                  [&] { of_->SquaredErrorGradient(y, targets, scale, dy); });
  }
  double DoBinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    double loss = 0;
    record_->Note("BinaryCrossEntropy", RowsText(logits), 0, {&logits, &targets},
                  [&] { loss = of_->BinaryCrossEntropy(logits, targets); });
    return loss;
  }
  void DoBinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                    const Tensor& dlogits) override {
    record_->Note("BinaryCrossEntropyGradient", RowsText(logits), 0, {&logits, &targets, &dlogits},
                  [&] { of_->BinaryCrossEntropyGradient(logits, targets, scale, dlogits); });
  }

 private:
  LossKernels* const of_;
  CallRecord* const record_;
};

class RecordedOptimizer final : public OptimizerKernels {
 public:
  RecordedOptimizer(OptimizerKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoAdam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
              const Tensor& v) override {
    record_->Note("Adam", RowsText(w), 0, {&w, &w, &dw, &m, &m, &v, &v},
                  [&] { of_->Adam(options, w, dw, m, v); });
  }
  void DoSgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
             const Tensor& velocity) override {
    record_->Note("Sgd", RowsText(w), 0, {&w, &w, &dw, &velocity, &velocity},
                  [&] { of_->Sgd(options, w, dw, velocity); });
  }
  void DoRmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
                 const Tensor& squares, const Tensor& velocity) override {
    record_->Note("RmsProp", RowsText(w), 0,
                  {&w, &w, &dw, &squares, &squares, &velocity, &velocity},
                  [&] { of_->RmsProp(options, w, dw, squares, velocity); });
  }
  double SumOfSquares(const Tensor& x) override {
    double sum = 0;
    record_->Note("SumOfSquares", RowsText(x), 0, {&x}, [&] { sum = of_->SumOfSquares(x); });
    return sum;
  }
  void Scale(const Tensor& x, float factor) override {
    record_->Note("Scale", RowsText(x), 0, {&x, &x}, [&] { of_->Scale(x, factor); });
  }

 private:
  OptimizerKernels* const of_;
  CallRecord* const record_;
};

class RecordedPooling final : public PoolingKernels {
 public:
  RecordedPooling(PoolingKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoMax(const PoolingShape& s, const Tensor& x, const Tensor& y) override {
    record_->Note("MaxPool", Text(s), 0, {&x, &y}, [&] { of_->Max(s, x, y); });
  }
  void DoMaxGradient(const PoolingShape& s, const Tensor& dy, const Tensor& x,
                     const Tensor& dx) override {
    record_->Note("MaxPoolGradient", Text(s), 0, {&dy, &x, &dx},
                  [&] { of_->MaxGradient(s, dy, x, dx); });
  }
  void DoAverage(const PoolingShape& s, const Tensor& x, const Tensor& y) override {
    record_->Note("AveragePool", Text(s), 0, {&x, &y}, [&] { of_->Average(s, x, y); });
  }
  void DoAverageGradient(const PoolingShape& s, const Tensor& dy, const Tensor& dx) override {
    record_->Note("AveragePoolGradient", Text(s), 0, {&dy, &dx},
                  [&] { of_->AverageGradient(s, dy, dx); });
  }

 private:
  PoolingKernels* const of_;
  CallRecord* const record_;
};

}  // namespace

std::unique_ptr<AttentionKernels> RecordAttention(AttentionKernels* of, CallRecord* record) {
  return std::make_unique<RecordedAttention>(of, record);
}
std::unique_ptr<BatchNormKernels> RecordBatchNorm(BatchNormKernels* of, CallRecord* record) {
  return std::make_unique<RecordedBatchNorm>(of, record);
}
std::unique_ptr<ConvolutionKernels> RecordConvolution(ConvolutionKernels* of, CallRecord* record) {
  return std::make_unique<RecordedConvolution>(of, record);
}
std::unique_ptr<EmbeddingKernels> RecordEmbedding(EmbeddingKernels* of, CallRecord* record) {
  return std::make_unique<RecordedEmbedding>(of, record);
}
std::unique_ptr<ExpertKernels> RecordExperts(ExpertKernels* of, CallRecord* record) {
  return std::make_unique<RecordedExperts>(of, record);
}
std::unique_ptr<LossKernels> RecordLoss(LossKernels* of, CallRecord* record) {
  return std::make_unique<RecordedLoss>(of, record);
}
std::unique_ptr<OptimizerKernels> RecordOptimizer(OptimizerKernels* of, CallRecord* record) {
  return std::make_unique<RecordedOptimizer>(of, record);
}
std::unique_ptr<PoolingKernels> RecordPooling(PoolingKernels* of, CallRecord* record) {
  return std::make_unique<RecordedPooling>(of, record);
}

}  // namespace pipelab
