// Convolutions, pooling, batch normalisation.
#include <algorithm>
#include <cmath>
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

// Sums over m rows of normal values, of which results are functions with slopes of some units (the
// deviation of a few rows may be small): scale 4.
void AddBatchNormCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : BatchNormShapes(size)) {
    const Shape full{s.rows, s.columns}, columns{s.columns};
    const CaseTensor in{full}, out{full, kOut}, column{columns}, column_out{columns, kOut};
    const CaseTensor variance{columns, TensorRole::kInput, 1, true};
    const double n = double(s.rows) * s.columns;
    const std::string shape = absl::StrCat(s.rows, "x", s.columns);
    KernelCase c;
    c.error_terms = s.rows;
    c.error_scale = 4;
    c.in_bfloat16 = CaseInBFloat16{{4, 5}};
    c.name = absl::StrCat("BatchNorm/", shape);
    c.tensors = {in, column, column, out, column_out, column_out};
    c.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().Forward(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    c.bytes = Floats(2 * n);
    cases->push_back(c);
    // dy, x, gamma, mean, variance -> dx and the parts of dgamma and dbeta.
    c.in_bfloat16 = CaseInBFloat16{{3, 4, 6, 7}};
    c.name = absl::StrCat("BatchNormInputGradient/", shape);
    c.tensors = {in, in, column, column, variance, out, column_out, column_out};
    c.prepare = [](Backend* be, const Tensors& t) {
      be->batch_norm().Forward(t[1], t[2], t[2], be->Allocate(t[1].shape()), t[3], t[4]);
    };
    c.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().InputGradient(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
    };
    c.bytes = Floats(3 * n);
    cases->push_back(c);

    KernelCase parts = c;
    parts.prepare = nullptr;
    parts.in_bfloat16 = CaseInBFloat16{{1, 2}};
    parts.name = absl::StrCat("BatchNormStatistics/", shape);
    parts.tensors = {in, column_out, column_out};
    parts.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().Statistics(t[0], t[1], t[2]);
    };
    parts.bytes = Floats(n);
    cases->push_back(parts);
    parts.in_bfloat16 = CaseInBFloat16{{2, 3, 4, 5}};
    parts.name = absl::StrCat("BatchNormGradientSums/", shape);
    parts.tensors = {in, in, column, variance, column_out, column_out};
    parts.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().GradientSums(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    parts.bytes = Floats(2 * n);
    cases->push_back(parts);
    // These rows are a third of all.
    parts.in_bfloat16 = CaseInBFloat16{{3, 4, 5, 6}};
    parts.name = absl::StrCat("BatchNormInputGradientOfSums/", shape);
    parts.tensors = {in, in, column, column, variance, column, column, out};
    parts.run = [rows = 3 * s.rows](Backend* be, const Tensors& t) {
      be->batch_norm().InputGradientOfSums(t[0], t[1], t[2], t[3], t[4], {t[5], t[6], rows}, t[7]);
    };
    parts.bytes = Floats(3 * n);
    cases->push_back(parts);

    KernelCase inference;
    inference.error_terms = 4;
    inference.error_scale = 4;
    inference.in_bfloat16 = CaseInBFloat16{{3, 4}};
    inference.name = absl::StrCat("BatchNormInference/", shape);
    inference.tensors = {in, column, column, column, variance, out};
    inference.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().Inference(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    inference.bytes = Floats(2 * n);
    cases->push_back(inference);
    if (size == CaseSize::kLarge) continue;  // nothing to measure in a few columns

    KernelCase sum;
    sum.error_model = ErrorModel::kMultilinear;
    sum.error_terms = 2;
    sum.name = absl::StrCat("BatchNormWeightGradient/", shape);
    sum.tensors = {column, column, {columns, kAdded}, {columns, kAdded}};
    sum.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().WeightGradient(t[0], t[1], t[2], t[3]);
    };
    cases->push_back(sum);
    KernelCase update;  // in double; the running value is rounded after the product and the sum
    update.error_terms = 2;
    update.name = absl::StrCat("BatchNormUpdateRunning/", shape);
    update.tensors = {{{s.rows, 2 * s.columns}, TensorRole::kInput, 1, true},
                      {columns, kAdded},
                      {columns, kAdded, 1, true}};
    update.run = [](Backend* be, const Tensors& t) {
      be->batch_norm().UpdateRunning(t[0], {}, 0.1f, t[1], t[2]);
    };
    cases->push_back(update);
  }
}

}  // namespace pipelab
