// The list: every kernel of Backend on every shape of shapes.h, in each type that it has.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"

namespace pipelab {
namespace {

void AddMatmuls(CaseSize size, std::vector<KernelCase>* cases) {
  for (const MatmulSize& s : MatmulShapes(size)) {
    const Shape x{s.m, s.k}, w{s.k, s.n}, wt{s.n, s.k}, y{s.m, s.n}, b{s.n};
    const auto add = [&](const char* name, std::vector<CaseTensor> tensors, int64_t terms,
                         std::function<void(Backend*, const Tensors&)> run,
                         std::vector<size_t> floats = {}) {
      KernelCase c;
      c.in_bfloat16 = CaseInBFloat16{std::move(floats)};
      c.name = absl::StrCat(name, "/", s.m, "x", s.k, "x", s.n);
      c.tensors = std::move(tensors);
      c.run = std::move(run);
      c.error_model = ErrorModel::kMultilinear;
      c.error_terms = terms;
      c.flops = 2.0 * s.m * s.k * s.n;
      c.matmul = s;
      c.bytes = Floats(double(s.m) * s.k + double(s.k) * s.n + double(s.m) * s.n);
      cases->push_back(std::move(c));
    };
    add("Linear", {{x}, {w}, {b}, {y, kOut}}, s.k + 1,
        [](Backend* be, const Tensors& t) { be->Linear(t[0], t[1], t[2], t[3]); });
    add("LinearNoBias", {{x}, {w}, {y, kOut}}, s.k,
        [](Backend* be, const Tensors& t) { be->Linear(t[0], t[1], Tensor(), t[2]); });
    add("LinearInputGradient", {{y}, {w}, {x, kOut}}, s.n,
        [](Backend* be, const Tensors& t) { be->LinearInputGradient(t[0], t[1], t[2]); });
    add("LinearWeightGradient", {{x}, {y}, {w, kAdded}, {b, kAdded}}, s.m + 1,
        [](Backend* be, const Tensors& t) { be->LinearWeightGradient(t[0], t[1], t[2], t[3]); },
        {2, 3});
    // What the gelu does to an error of h is below 1.2 times it; its own roundings come on top.
    KernelCase fused;
    fused.error_terms = std::max(s.k, s.n) + 4;
    fused.error_scale = 4 * std::sqrt(static_cast<double>(std::max(s.k, s.n)));
    fused.flops = 2.0 * s.m * s.k * s.n;
    fused.bytes = Floats(double(s.m) * s.k + double(s.k) * s.n + 2.0 * s.m * s.n);
    fused.name = absl::StrCat("LinearGelu/", s.m, "x", s.k, "x", s.n);
    fused.tensors = {{x}, {w}, {b}, {y, kOut}, {y, kOut}};
    fused.run = [](Backend* be, const Tensors& t) { be->LinearGelu(t[0], t[1], t[2], t[3], t[4]); };
    // h may be rounded before the gelu takes it, which grows by 1.2 of that at most.
    fused.in_bfloat16 = CaseInBFloat16{{}, 3, [](const Tensors& t) { return MaxAbs(t[3]); }};
    cases->push_back(fused);
    fused.name = absl::StrCat("LinearGeluInputGradient/", s.m, "x", s.k, "x", s.n);
    fused.tensors = {{y}, {w}, {x}, {x, kOut}};
    fused.run = [](Backend* be, const Tensors& t) {
      be->LinearGeluInputGradient(t[0], t[1], t[2], t[3]);
    };
    fused.in_bfloat16 = CaseInBFloat16{{}, 2};  // the product may be rounded before its last factor
    cases->push_back(fused);
    add("LinearTransposed", {{x}, {wt}, {y, kOut}}, s.k,
        [](Backend* be, const Tensors& t) { be->LinearTransposed(t[0], t[1], t[2]); });
    add("LinearTransposedInputGradient", {{y}, {wt}, {x, kOut}}, s.n,
        [](Backend* be, const Tensors& t) { be->LinearTransposedInputGradient(t[0], t[1], t[2]); });
    add("LinearTransposedWeightGradient", {{x}, {y}, {wt, kAdded}}, s.m + 1,
        [](Backend* be, const Tensors& t) { be->LinearTransposedWeightGradient(t[0], t[1], t[2]); },
        {2});
  }
}

// Sums over c columns (dx) or m rows (dgamma). Normal inputs keep 1/std near 1, except in tiny rows
// where it can be some tens: scale 4 covers the second sum that the first one's error enters.
void AddLayerNorms(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : NormShapes(size)) {
    const Shape full{s.rows, s.columns}, columns{s.columns}, rows{s.rows};
    const double n = double(s.rows) * s.columns;
    KernelCase c;
    c.error_terms = s.columns;
    c.name = absl::StrCat("LayerNorm/", s.rows, "x", s.columns);
    c.tensors = {{full}, {columns}, {columns}, {full, kOut}, {rows, kOut}, {rows, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNorm(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    c.bytes = Floats(2 * n);
    c.in_bfloat16 = CaseInBFloat16{{4, 5}};
    cases->push_back(c);

    // dy, x, gamma, mean, rstd -> dx, with the statistics of x.
    c.name = absl::StrCat("LayerNormInputGradient/", s.rows, "x", s.columns);
    c.tensors = {{full}, {full}, {columns}, {rows}, {rows}, {full, kOut}};
    c.prepare = [](Backend* be, const Tensors& t) {
      const Tensor y = be->Allocate(t[1].shape());
      be->LayerNorm(t[1], t[2], t[2], y, t[3], t[4]);
    };
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNormInputGradient(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    // g - mean(g) - x^ mean(g x^) is nearly 0 in rows of two.
    c.magnitude = [](const Tensors& t) { return MaxAbs(t[0]) * MaxAbs(t[2]) * MaxAbs(t[4]); };
    c.bytes = Floats(3 * n);
    c.in_bfloat16 = CaseInBFloat16{{3, 4}};
    cases->push_back(c);

    // dy, x, mean, rstd -> dgamma, dbeta.
    c.name = absl::StrCat("LayerNormWeightGradient/", s.rows, "x", s.columns);
    c.tensors = {{full}, {full}, {rows}, {rows}, {columns, kAdded}, {columns, kAdded}};
    c.prepare = [](Backend* be, const Tensors& t) {
      const Tensor y = be->Allocate(t[1].shape());
      be->LayerNorm(t[1], t[4], t[5], y, t[2], t[3]);
    };
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNormWeightGradient(t[0], t[1], t[2], t[3], t[4], t[5]);
    };
    c.magnitude = nullptr;
    c.error_terms = s.rows + 1;
    c.bytes = Floats(2 * n);
    c.in_bfloat16 = CaseInBFloat16{{2, 3, 4, 5}};
    cases->push_back(c);
  }
}

// Without mean and beta; otherwise as the layer norms.
void AddRmsNorms(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : NormShapes(size)) {
    const Shape full{s.rows, s.columns}, columns{s.columns}, rows{s.rows};
    const double n = double(s.rows) * s.columns;
    KernelCase c;
    c.error_terms = s.columns;
    c.name = absl::StrCat("RmsNorm/", s.rows, "x", s.columns);
    c.tensors = {{full}, {columns}, {full, kOut}, {rows, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNorm(t[0], t[1], Tensor(), t[2], Tensor(), t[3]);
    };
    c.bytes = Floats(2 * n);
    c.in_bfloat16 = CaseInBFloat16{{3}};
    cases->push_back(c);

    // dy, x, gamma, rstd -> dx.
    c.name = absl::StrCat("RmsNormInputGradient/", s.rows, "x", s.columns);
    c.tensors = {{full}, {full}, {columns}, {rows}, {full, kOut}};
    c.prepare = [](Backend* be, const Tensors& t) {
      be->LayerNorm(t[1], t[2], Tensor(), be->Allocate(t[1].shape()), Tensor(), t[3]);
    };
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNormInputGradient(t[0], t[1], t[2], Tensor(), t[3], t[4]);
    };
    c.magnitude = [](const Tensors& t) { return MaxAbs(t[0]) * MaxAbs(t[2]) * MaxAbs(t[3]); };
    c.bytes = Floats(3 * n);
    c.in_bfloat16 = CaseInBFloat16{{3}};
    cases->push_back(c);

    // dy, x, rstd -> dgamma.
    c.name = absl::StrCat("RmsNormWeightGradient/", s.rows, "x", s.columns);
    c.tensors = {{full}, {full}, {rows}, {columns, kAdded}};
    c.prepare = [](Backend* be, const Tensors& t) {
      be->LayerNorm(t[1], t[3], Tensor(), be->Allocate(t[1].shape()), Tensor(), t[2]);
    };
    c.run = [](Backend* be, const Tensors& t) {
      be->LayerNormWeightGradient(t[0], t[1], Tensor(), t[2], t[3], Tensor());
    };
    c.magnitude = nullptr;
    c.error_terms = s.rows + 1;
    c.bytes = Floats(2 * n);
    c.in_bfloat16 = CaseInBFloat16{{2, 3}};
    cases->push_back(c);
  }
}

// As the GELUs, with one more factor.
void AddGates(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : NormShapes(size)) {
    const Shape pair{s.rows, 2 * s.columns}, one{s.rows, s.columns};
    for (const GateKind kind : {GateKind::kSwish, GateKind::kGelu}) {
      const char* const name = kind == GateKind::kSwish ? "Swish" : "Gelu";
      KernelCase c;
      c.error_terms = 5;
      c.in_bfloat16 = CaseInBFloat16{};
      c.name = absl::StrCat("Gate", name, "/", s.rows, "x", s.columns);
      c.tensors = {{pair, TensorRole::kInput, 3}, {one, kOut}};
      c.run = [kind](Backend* be, const Tensors& t) { be->Gate(kind, t[0], t[1]); };
      c.bytes = Floats(3.0 * s.rows * s.columns);
      cases->push_back(c);
      c.error_scale = 4;
      c.name = absl::StrCat("GateGradient", name, "/", s.rows, "x", s.columns);
      c.tensors = {{one}, {pair, TensorRole::kInput, 3}, {pair, kOut}};
      c.run = [kind](Backend* be, const Tensors& t) { be->GateGradient(kind, t[0], t[1], t[2]); };
      c.bytes = Floats(5.0 * s.rows * s.columns);
      cases->push_back(c);
    }
  }
}

// The gate's exponent errs by about 4 u relative, and |z| gate (1 - gate) < 0.3; the rest is a
// handful of roundings. So does what erfc takes. Spread 3 reaches both flat ends.
void AddGelus(int64_t n, std::vector<KernelCase>* cases) {
  for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
    const char* const name = form == GeluForm::kErf ? "Erf" : "";
    KernelCase c;
    c.error_terms = 4;
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("Gelu", name, "/", n);
    c.tensors = {{{n}, TensorRole::kInput, 3}, {{n}, kOut}};
    c.run = [form](Backend* be, const Tensors& t) { be->Gelu(t[0], t[1], form); };
    c.bytes = Floats(2.0 * n);
    cases->push_back(c);
    // z^2 e^-z grows to some units in the derivative's second term: scale 4.
    c.error_scale = 4;
    c.name = absl::StrCat("GeluGradient", name, "/", n);
    c.tensors = {{{n}}, {{n}, TensorRole::kInput, 3}, {{n}, kOut}};
    c.run = [form](Backend* be, const Tensors& t) { be->GeluGradient(t[0], t[1], t[2], form); };
    c.bytes = Floats(3.0 * n);
    cases->push_back(c);
  }
}

void AddRelus(int64_t n, std::vector<KernelCase>* cases) {
  KernelCase relu;  // exact
  relu.in_bfloat16 = CaseInBFloat16{{}, 0};
  relu.name = absl::StrCat("Relu/", n);
  relu.tensors = {{{n}}, {{n}, kOut}};
  relu.run = [](Backend* be, const Tensors& t) { be->Relu(t[0], t[1]); };
  relu.bytes = Floats(2.0 * n);
  cases->push_back(relu);
  relu.name = absl::StrCat("ReluGradient/", n);
  relu.tensors = {{{n}}, {{n}}, {{n}, kOut}};
  relu.run = [](Backend* be, const Tensors& t) { be->ReluGradient(t[0], t[1], t[2]); };
  relu.bytes = Floats(3.0 * n);
  cases->push_back(relu);
}

void AddSums(int64_t n, std::vector<KernelCase>* cases) {
  KernelCase sum;
  sum.name = absl::StrCat("Add/", n);
  sum.tensors = {{{n}}, {{n}}, {{n}, kOut}};
  sum.run = [](Backend* be, const Tensors& t) { be->Add(t[0], t[1], t[2]); };
  sum.error_model = ErrorModel::kMultilinear;
  sum.error_terms = 2;
  sum.bytes = Floats(3.0 * n);
  sum.in_bfloat16 = CaseInBFloat16{};
  cases->push_back(sum);
  sum.name = absl::StrCat("AddToFloats/", n);
  sum.tensors = {{{n}, kAdded}, {{n}}};
  sum.run = [](Backend* be, const Tensors& t) { be->Add(t[0], t[1], t[0]); };
  sum.in_bfloat16 = CaseInBFloat16{{0}};
  cases->push_back(sum);
}

void AddCopies(int64_t n, std::vector<KernelCase>* cases) {
  KernelCase copy;  // exact, but for one rounding
  copy.name = absl::StrCat("Copy/", n);
  copy.tensors = {{{n}}, {{n}, kOut}};
  copy.run = [](Backend* be, const Tensors& t) { be->Copy(t[0], t[1]); };
  copy.bytes = Floats(2.0 * n);
  copy.in_bfloat16 = CaseInBFloat16{{0}};
  cases->push_back(copy);
  copy.name = absl::StrCat("CopyToFloats/", n);
  copy.in_bfloat16 = CaseInBFloat16{{1}};
  cases->push_back(copy);
}

void AddColumnCopies(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : NormShapes(size)) {
    // The middle of a row goes behind three columns of another tensor.
    const int64_t begin = s.columns / 3, columns = s.columns / 2;
    KernelCase c;
    c.name = absl::StrCat("CopyColumns/", s.rows, "x", s.columns);
    c.tensors = {{{s.rows, s.columns}}, {{s.rows, 3 + columns}, kAdded}};
    c.run = [begin, columns](Backend* be, const Tensors& t) {
      be->CopyColumns(t[0], begin, t[1], 3, columns);
    };
    c.bytes = Floats(2.0 * s.rows * columns);
    c.in_bfloat16 = CaseInBFloat16{{}, 0};
    cases->push_back(c);
    c.name = absl::StrCat("CopyColumnsOfFloats/", s.rows, "x", s.columns);
    c.in_bfloat16 = CaseInBFloat16{{0}};
    cases->push_back(c);
  }
}

void AddDropouts(CaseSize size, std::vector<KernelCase>* cases) {
  for (const DropoutShape& s : DropoutShapes(size)) {
    DropoutMask mask;
    mask.rate = s.rate;
    mask.rng = CounterRng(3, "dropout");
    mask.offset = s.offset;
    const std::string shape = absl::StrCat(s.elements, "/", s.rate, "/", s.offset);
    KernelCase c;
    c.error_model = ErrorModel::kMultilinear;
    c.error_terms = 2;
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("Dropout/", shape);
    c.tensors = {{{s.elements}}, {{s.elements}, kOut}};
    c.run = [mask](Backend* be, const Tensors& t) { be->Dropout(t[0], mask, t[1]); };
    c.bytes = Floats(2.0 * s.elements);
    cases->push_back(c);
    c.name = absl::StrCat("AddDropout/", shape);
    c.tensors = {{{s.elements}}, {{s.elements}}, {{s.elements}, kOut}};
    c.run = [mask](Backend* be, const Tensors& t) { be->AddDropout(t[0], t[1], mask, t[2]); };
    c.bytes = Floats(3.0 * s.elements);
    cases->push_back(c);
  }
}

void AddElementwise(CaseSize size, std::vector<KernelCase>* cases) {
  for (int64_t n : ElementCounts(size)) {
    AddGelus(n, cases);
    AddRelus(n, cases);
    AddSums(n, cases);
    AddCopies(n, cases);
  }
  AddColumnCopies(size, cases);
  AddDropouts(size, cases);
}

}  // namespace

std::vector<KernelCase> KernelCases(CaseSize size, DataType activations) {
  std::vector<KernelCase> cases;
  AddMatmuls(size, &cases);
  AddLayerNorms(size, &cases);
  AddRmsNorms(size, &cases);
  AddGates(size, &cases);
  AddAttentionCases(size, &cases);
  AddElementwise(size, &cases);
  AddEmbeddingCases(size, &cases);
  AddExpertCases(size, &cases);
  AddGraphCases(size, &cases);
  AddLossCases(size, &cases);
  AddOptimizerCases(size, &cases);
  AddConvolutionCases(size, &cases);
  AddPoolingCases(size, &cases);
  AddBatchNormCases(size, &cases);
  AddQuantizedCases(size, &cases);
  if (activations == DataType::kFloat32) return cases;
  std::vector<KernelCase> in_bfloat16;
  for (KernelCase& c : cases) {
    if (!c.in_bfloat16.has_value()) continue;
    c.activations = activations;
    c.name = absl::StrCat(DataTypeName(activations), "/", c.name);
    in_bfloat16.push_back(std::move(c));
  }
  return in_bfloat16;
}

}  // namespace pipelab
