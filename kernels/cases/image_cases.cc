// Convolutions, pooling, batch normalisation.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"
#include "kernels/cases/image_shapes.h"

namespace pipelab {
namespace {

Shape InputShape(const ConvolutionShape& s) {
  return {s.samples, s.height, s.width, s.in_channels};
}
Shape WeightShape(const ConvolutionShape& s) {
  if (s.depthwise) return {s.kernel_height, s.kernel_width, s.out_channels};
  return {s.kernel_height, s.kernel_width, s.in_channels, s.out_channels};
}
Shape OutputShape(const ConvolutionShape& s) {
  return {s.samples, s.out_height(), s.out_width(), s.out_channels};
}

}  // namespace

void AddConvolutionCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const ConvolutionShape& s : ConvolutionShapes(size)) {
    const Shape x = InputShape(s), w = WeightShape(s), y = OutputShape(s), b = {s.out_channels};
    const int64_t taps = s.kernel_height * s.kernel_width;
    const auto add = [&](const char* name, ConvolutionPass pass, std::vector<CaseTensor> tensors,
                         int64_t terms, CaseInBFloat16 in_bfloat16,
                         std::function<void(Backend*, const Tensors&)> run) {
      KernelCase c;
      c.in_bfloat16 = std::move(in_bfloat16);
      c.name = absl::StrCat(name, "/", ToString(s));
      c.tensors = std::move(tensors);
      c.run = std::move(run);
      c.error_model = ErrorModel::kMultilinear;
      c.error_terms = terms;
      c.flops = s.flops();
      c.bytes = Floats(double(NumElements(x)) + double(NumElements(w)) + double(NumElements(y)));
      c.convolution = LibraryConvolution{s, pass};
      cases->push_back(std::move(c));
    };
    using Pass = ConvolutionPass;
    add("Convolution", Pass::kForward, {{x}, {w}, {y, kOut}},
        taps * (s.depthwise ? 1 : s.in_channels), {}, [s](Backend* be, const Tensors& t) {
          be->convolution().Forward(s, t[0], t[1], Tensor(), t[2]);
        });
    // The library rounds before the bias comes.
    const auto before_bias = [](const Tensors& t) { return MaxAbs(t[2]) + MaxAbs(t[3]); };
    add("ConvolutionBias", Pass::kForward, {{x}, {w}, {b}, {y, kOut}},
        taps * (s.depthwise ? 1 : s.in_channels) + 1, {{}, 2, before_bias},
        [s](Backend* be, const Tensors& t) {
          be->convolution().Forward(s, t[0], t[1], t[2], t[3]);
        });
    // Nobody asks for the gradient of the data: no speed to measure.
    if (size != CaseSize::kLarge || s.in_channels > 3)
      add("ConvolutionInputGradient", Pass::kInputGradient, {{y}, {w}, {x, kOut}},
          taps * (s.depthwise ? 1 : s.out_channels), {}, [s](Backend* be, const Tensors& t) {
            be->convolution().InputGradient(s, t[0], t[1], t[2]);
          });
    add("ConvolutionWeightGradient", Pass::kWeightGradient, {{x}, {y}, {w, kAdded}},
        NumElements(y) / s.out_channels + 1, {{2}, 1, nullptr, {2}},
        [s](Backend* be, const Tensors& t) {
          be->convolution().WeightGradient(s, t[0], t[1], t[2], Tensor());
        });
    if (size == CaseSize::kLarge) continue;  // the same call to the library, and sums of rows
    add("ConvolutionWeightGradientBias", Pass::kWeightGradient,
        {{x}, {y}, {w, kAdded}, {b, kAdded}}, NumElements(y) / s.out_channels + 1,
        {{2, 3}, 1, nullptr, {2}}, [s](Backend* be, const Tensors& t) {
          be->convolution().WeightGradient(s, t[0], t[1], t[2], t[3]);
        });
  }
}

void AddPoolingCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const PoolingShape& s : PoolingShapes(size)) {
    const Shape x{s.samples, s.height, s.width, s.channels};
    const Shape y{s.samples, s.out_height(), s.out_width(), s.channels};
    const double n = double(NumElements(x)) + double(NumElements(y));
    KernelCase c;  // an element of dx collects as many as a window has pixels, at most
    c.error_terms = s.kernel_height * s.kernel_width + 1;
    c.in_bfloat16 = CaseInBFloat16{{}, 0};
    c.name = absl::StrCat("MaxPool/", ToString(s));
    c.tensors = {{x}, {y, kOut}};
    c.run = [s](Backend* be, const Tensors& t) { be->pooling().Max(s, t[0], t[1]); };
    c.bytes = Floats(n);
    cases->push_back(c);
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("MaxPoolGradient/", ToString(s));
    c.tensors = {{y}, {x}, {x, kOut}};
    c.run = [s](Backend* be, const Tensors& t) { be->pooling().MaxGradient(s, t[0], t[1], t[2]); };
    c.bytes = Floats(n + NumElements(x));
    cases->push_back(c);

    c.error_model = ErrorModel::kMultilinear;
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("AveragePool/", ToString(s));
    c.tensors = {{x}, {y, kOut}};
    c.run = [s](Backend* be, const Tensors& t) { be->pooling().Average(s, t[0], t[1]); };
    c.bytes = Floats(n);
    cases->push_back(c);
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("AveragePoolGradient/", ToString(s));
    c.tensors = {{y}, {x, kOut}};
    c.run = [s](Backend* be, const Tensors& t) { be->pooling().AverageGradient(s, t[0], t[1]); };
    cases->push_back(c);
  }
}

namespace {

// What cases of one size take.
struct BatchNormTensors {
  explicit BatchNormTensors(const RowsSize& s) : size(s) {}

  RowsSize size;
  std::string shape = absl::StrCat(size.rows, "x", size.columns);
  double numbers = double(size.rows) * size.columns;
  Shape full{size.rows, size.columns}, columns{size.columns};
  CaseTensor in{full}, out{full, kOut}, column{columns}, column_out{columns, kOut};
  CaseTensor variance{columns, TensorRole::kInput, 1, true};
};

// Sums over m rows of normal values, of which results are functions with slopes of some units (the
// deviation of a few rows may be small): scale 4.
void AddBatchNormPasses(const BatchNormTensors& of, std::vector<KernelCase>* cases) {
  KernelCase c;
  c.error_terms = of.size.rows;
  c.error_scale = 4;
  c.in_bfloat16 = CaseInBFloat16{{4, 5}};
  c.name = absl::StrCat("BatchNorm/", of.shape);
  c.tensors = {of.in, of.column, of.column, of.out, of.column_out, of.column_out};
  c.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().Forward(t[0], t[1], t[2], t[3], t[4], t[5]);
  };
  c.bytes = Floats(2 * of.numbers);
  cases->push_back(c);
  // dy, x, gamma, mean, variance -> dx and the parts of dgamma and dbeta.
  c.in_bfloat16 = CaseInBFloat16{{3, 4, 6, 7}};
  c.name = absl::StrCat("BatchNormInputGradient/", of.shape);
  c.tensors = {of.in,       of.in,  of.column,     of.column,
               of.variance, of.out, of.column_out, of.column_out};
  c.prepare = [](Backend* be, const Tensors& t) {
    be->batch_norm().Forward(t[1], t[2], t[2], be->Allocate(t[1].shape()), t[3], t[4]);
  };
  c.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().InputGradient(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
  };
  c.bytes = Floats(3 * of.numbers);
  cases->push_back(c);
}

// The same in parts.
void AddBatchNormParts(const BatchNormTensors& of, std::vector<KernelCase>* cases) {
  KernelCase parts;
  parts.error_terms = of.size.rows;
  parts.error_scale = 4;
  parts.in_bfloat16 = CaseInBFloat16{{1, 2}};
  parts.name = absl::StrCat("BatchNormStatistics/", of.shape);
  parts.tensors = {of.in, of.column_out, of.column_out};
  parts.run = [](Backend* be, const Tensors& t) { be->batch_norm().Statistics(t[0], t[1], t[2]); };
  parts.bytes = Floats(of.numbers);
  cases->push_back(parts);
  parts.in_bfloat16 = CaseInBFloat16{{2, 3, 4, 5}};
  parts.name = absl::StrCat("BatchNormGradientSums/", of.shape);
  parts.tensors = {of.in, of.in, of.column, of.variance, of.column_out, of.column_out};
  parts.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().GradientSums(t[0], t[1], t[2], t[3], t[4], t[5]);
  };
  parts.bytes = Floats(2 * of.numbers);
  cases->push_back(parts);
  // These rows are a third of all.
  parts.in_bfloat16 = CaseInBFloat16{{3, 4, 5, 6}};
  parts.name = absl::StrCat("BatchNormInputGradientOfSums/", of.shape);
  parts.tensors = {of.in, of.in, of.column, of.column, of.variance, of.column, of.column, of.out};
  parts.run = [rows = 3 * of.size.rows](Backend* be, const Tensors& t) {
    be->batch_norm().InputGradientOfSums(t[0], t[1], t[2], t[3], t[4], {t[5], t[6], rows}, t[7]);
  };
  parts.bytes = Floats(3 * of.numbers);
  cases->push_back(parts);
}

void AddBatchNormInference(const BatchNormTensors& of, std::vector<KernelCase>* cases) {
  KernelCase inference;
  inference.error_terms = 4;
  inference.error_scale = 4;
  inference.in_bfloat16 = CaseInBFloat16{{3, 4}};
  inference.name = absl::StrCat("BatchNormInference/", of.shape);
  inference.tensors = {of.in, of.column, of.column, of.column, of.variance, of.out};
  inference.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().Inference(t[0], t[1], t[2], t[3], t[4], t[5]);
  };
  inference.bytes = Floats(2 * of.numbers);
  cases->push_back(inference);
}

void AddBatchNormUpdates(const BatchNormTensors& of, std::vector<KernelCase>* cases) {
  KernelCase sum;
  sum.error_model = ErrorModel::kMultilinear;
  sum.error_terms = 2;
  sum.name = absl::StrCat("BatchNormWeightGradient/", of.shape);
  sum.tensors = {of.column, of.column, {of.columns, kAdded}, {of.columns, kAdded}};
  sum.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().WeightGradient(t[0], t[1], t[2], t[3]);
  };
  cases->push_back(sum);
  KernelCase update;  // in double; the running value is rounded after the product and the sum
  update.error_terms = 2;
  update.name = absl::StrCat("BatchNormUpdateRunning/", of.shape);
  update.tensors = {{{of.size.rows, 2 * of.size.columns}, TensorRole::kInput, 1, true},
                    {of.columns, kAdded},
                    {of.columns, kAdded, 1, true}};
  update.run = [](Backend* be, const Tensors& t) {
    be->batch_norm().UpdateRunning(t[0], {}, 0.1f, t[1], t[2]);
  };
  cases->push_back(update);
}

}  // namespace

void AddBatchNormCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : BatchNormShapes(size)) {
    const BatchNormTensors of(s);
    AddBatchNormPasses(of, cases);
    AddBatchNormParts(of, cases);
    AddBatchNormInference(of, cases);
    // There is nothing to measure in a few columns.
    if (size != CaseSize::kLarge) AddBatchNormUpdates(of, cases);
  }
}

}  // namespace pipelab
