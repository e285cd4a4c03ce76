#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"

namespace pipelab {
namespace {

void AddCrossEntropies(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : LossShapes(size)) {
    const Shape logits{s.rows, s.columns};
    const CaseTensor targets{
        {s.rows}, TensorRole::kInput, 1, false, static_cast<int32_t>(s.columns)};
    const std::string shape = absl::StrCat(s.rows, "x", s.columns);
    KernelCase c;
    c.error_terms =
        s.columns;  // the softmax's sum; a logit's rounding counts by its size, some units: 4
    c.error_scale = 4;
    c.name = absl::StrCat("CrossEntropy/", shape);
    c.tensors = {{logits, TensorRole::kInput, 2}, targets, {{1}, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      t[2].f32()[0] = static_cast<float>(be->loss().CrossEntropy(t[0], t[1]));
    };
    c.bytes = Floats(double(s.rows) * s.columns);
    cases->push_back(c);
    c.name = absl::StrCat("CrossEntropyGradient/", shape);
    c.tensors = {{logits, TensorRole::kInput, 2}, targets, {logits, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      be->loss().CrossEntropyGradient(t[0], t[1], 0.3f, t[2]);
    };
    c.bytes *= 2;
    cases->push_back(c);
  }
}

}  // namespace

void AddLossCases(CaseSize size, std::vector<KernelCase>* cases) {
  AddCrossEntropies(size, cases);
  for (int64_t n : ElementCounts(size)) {
    // The sums are in double: what is left is one rounding of the result.
    const CaseTensor y{{n}, TensorRole::kInput, 3}, targets{{n}, TensorRole::kInput, 0.3, true};
    KernelCase c;
    c.name = absl::StrCat("SquaredError/", n);
    c.tensors = {y, targets, {{1}, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      t[2].f32()[0] = static_cast<float>(be->loss().SquaredError(t[0], t[1]));
    };
    c.bytes = Floats(2.0 * n);
    cases->push_back(c);
    c.name = absl::StrCat("BinaryCrossEntropy/", n);
    c.run = [](Backend* be, const Tensors& t) {
      t[2].f32()[0] = static_cast<float>(be->loss().BinaryCrossEntropy(t[0], t[1]));
    };
    cases->push_back(c);
    c.name = absl::StrCat("SquaredErrorGradient/", n);
    c.tensors = {y, targets, {{n}, kOut}};
    c.error_terms = 2;
    c.run = [](Backend* be, const Tensors& t) {
      be->loss().SquaredErrorGradient(t[0], t[1], 0.3f, t[2]);
    };
    c.bytes = Floats(3.0 * n);
    cases->push_back(c);
    // A sigmoid of about four roundings, at most 1, less a target.
    c.error_terms = 4;
    c.magnitude = [](const Tensors& t) { return 0.3 * (1 + MaxAbs(t[1])); };
    c.name = absl::StrCat("BinaryCrossEntropyGradient/", n);
    c.run = [](Backend* be, const Tensors& t) {
      be->loss().BinaryCrossEntropyGradient(t[0], t[1], 0.3f, t[2]);
    };
    cases->push_back(c);
  }
}

}  // namespace pipelab
