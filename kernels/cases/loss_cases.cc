#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"
#include "kernels/tensor/host_values.h"

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
    c.in_bfloat16 = CaseInBFloat16{{2}};
    c.name = absl::StrCat("CrossEntropy/", shape);
    c.tensors = {{logits, TensorRole::kInput, 2}, targets, {{1}, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      SetHostValues(t[2], {static_cast<float>(be->loss().CrossEntropy(t[0], t[1]))});
    };
    c.bytes = Floats(double(s.rows) * s.columns);
    cases->push_back(c);
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("CrossEntropyGradient/", shape);
    c.tensors = {{logits, TensorRole::kInput, 2}, targets, {logits, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      be->loss().CrossEntropyGradient(t[0], t[1], 0.3f, t[2]);
    };
    c.bytes *= 2;
    cases->push_back(c);
  }
}

// Columns from the middle of the words on: some targets are of other devices.
void AddCrossEntropyParts(CaseSize size, std::vector<KernelCase>* cases) {
  for (const RowsSize& s : LossShapes(size)) {
    const Shape logits_MV{s.rows, s.columns}, row_M{s.rows};
    const CaseTensor logits{logits_MV, TensorRole::kInput, 2}, numbers{row_M};
    const CaseTensor targets{row_M, TensorRole::kInput, 1, false,
                             static_cast<int32_t>(2 * s.columns)};
    const int64_t first = s.columns / 2;
    const std::string shape = absl::StrCat(s.rows, "x", s.columns);
    KernelCase c;
    c.in_bfloat16 = CaseInBFloat16{{1}};
    c.name = absl::StrCat("LargestLogits/", shape);
    c.tensors = {logits, {row_M, kOut}};
    c.run = [](Backend* be, const Tensors& t) { be->loss().LargestLogits(t[0], t[1]); };
    c.bytes = Floats(double(s.rows) * s.columns);
    cases->push_back(c);
    c.error_terms = s.columns;  // as of CrossEntropy
    c.error_scale = 4;
    c.in_bfloat16 = CaseInBFloat16{{2, 3, 4}};
    c.name = absl::StrCat("SoftmaxSums/", shape);
    c.tensors = {logits, targets, numbers, {row_M, kOut}, {row_M, kOut}};
    c.prepare = [](Backend* be, const Tensors& t) { be->loss().LargestLogits(t[0], t[2]); };
    c.run = [first](Backend* be, const Tensors& t) {
      be->loss().SoftmaxSums(t[0], t[1], first, t[2], t[3], t[4]);
    };
    cases->push_back(c);
    // The largest of other devices may be larger, and then a row's softmax is not 1: e^0 at most.
    c.in_bfloat16 = CaseInBFloat16{{2}};
    c.name = absl::StrCat("CrossEntropyPartGradient/", shape);
    c.tensors = {logits, targets, numbers, {logits_MV, kOut}};
    c.prepare = [](Backend* be, const Tensors& t) { be->loss().LargestLogits(t[0], t[2]); };
    c.run = [first](Backend* be, const Tensors& t) {
      be->loss().CrossEntropyPartGradient(t[0], t[1], first, t[2], 0.3f, t[3]);
    };
    c.bytes *= 2;
    cases->push_back(c);
    // Sums are in double; where terms cancel, their size is that of the inputs.
    c.error_terms = 1;
    c.error_scale = 1;
    c.prepare = nullptr;
    c.in_bfloat16.reset();  // of numbers that are float32 throughout
    c.name = absl::StrCat("CrossEntropyOfSums/", shape);
    c.tensors = {
        targets, {row_M, TensorRole::kInput, 3, true}, numbers, {row_M, kAdded}, {{1}, kOut}};
    c.magnitude = [](const Tensors& t) {
      double terms = 0;
      for (int64_t i = 0; i < t[1].size(); ++i) {
        terms += std::abs(std::log(t[1].f32()[i])) + std::abs(t[2].f32()[i]) + 4;
      }
      return terms;
    };
    c.run = [](Backend* be, const Tensors& t) {
      SetHostValues(t[4],
                    {static_cast<float>(be->loss().CrossEntropyOfSums(t[0], t[1], t[2], t[3]))});
    };
    c.bytes = Floats(4.0 * s.rows);
    cases->push_back(c);
  }
}

}  // namespace

void AddLossCases(CaseSize size, std::vector<KernelCase>* cases) {
  AddCrossEntropies(size, cases);
  AddCrossEntropyParts(size, cases);
  for (int64_t n : ElementCounts(size)) {
    // The sums are in double: what is left is one rounding of the result.
    const CaseTensor y{{n}, TensorRole::kInput, 3}, targets{{n}, TensorRole::kInput, 0.3, true};
    KernelCase c;
    c.in_bfloat16 = CaseInBFloat16{{1, 2}};
    c.name = absl::StrCat("SquaredError/", n);
    c.tensors = {y, targets, {{1}, kOut}};
    c.run = [](Backend* be, const Tensors& t) {
      SetHostValues(t[2], {static_cast<float>(be->loss().SquaredError(t[0], t[1]))});
    };
    c.bytes = Floats(2.0 * n);
    cases->push_back(c);
    c.name = absl::StrCat("BinaryCrossEntropy/", n);
    c.run = [](Backend* be, const Tensors& t) {
      SetHostValues(t[2], {static_cast<float>(be->loss().BinaryCrossEntropy(t[0], t[1]))});
    };
    cases->push_back(c);
    c.in_bfloat16 = CaseInBFloat16{{1}};
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
    c.in_bfloat16 = CaseInBFloat16{{1}};
    c.name = absl::StrCat("BinaryCrossEntropyGradient/", n);
    c.run = [](Backend* be, const Tensors& t) {
      be->loss().BinaryCrossEntropyGradient(t[0], t[1], 0.3f, t[2]);
    };
    cases->push_back(c);
  }
}

}  // namespace pipelab
