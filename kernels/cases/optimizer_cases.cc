#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {
namespace {

void AddAdams(CaseSize size, std::vector<KernelCase>* cases) {
  for (const AdamShape& s : AdamShapes(size)) {
    AdamOptions options;
    options.step = s.step;
    options.weight_decay = s.weight_decay;
    KernelCase c;
    c.name = absl::StrCat("Adam/", s.elements, "/", s.step);
    const Shape n{s.elements};  // w, dw, m, v
    c.tensors = {{n, kAdded}, {n}, {n, kAdded, 0.1}, {n, kAdded, 0.1, true}};
    c.run = [options](Backend* be, const Tensors& t) {
      be->optimizer().Adam(options, t[0], t[1], t[2], t[3]);
    };
    c.bytes = Floats(7.0 * s.elements);
    cases->push_back(c);
  }
}

// A velocity is a sum that may cancel: its terms are no larger than the largest of the tensors,
// where the gradient over RMSProp's root is at most 1 / sqrt(1 - decay) < 4.
double SumOfLargest(const Tensors& t) {
  double sum = 4;
  for (const Tensor& x : t) sum += MaxAbs(x);
  return sum;
}

void AddSgds(int64_t elements, std::vector<KernelCase>* cases) {
  const Shape n{elements};
  for (int variant = 0; variant < 3; ++variant) {
    SgdOptions options;
    options.learning_rate = 0.1f;
    options.weight_decay = variant == 1 ? 0 : 0.01f;
    options.momentum = variant == 0 ? 0 : 0.9f;
    options.nesterov = variant == 2;
    KernelCase c;
    c.name = absl::StrCat("Sgd",
                          variant == 0   ? ""
                          : variant == 1 ? "Momentum"
                                         : "Nesterov",
                          "/", elements);
    c.error_terms = 5;
    c.magnitude = &SumOfLargest;
    c.tensors = {{n, kAdded}, {n}};
    if (variant > 0) c.tensors.push_back({n, kAdded});
    c.run = [options](Backend* be, const Tensors& t) {
      be->optimizer().Sgd(options, t[0], t[1], t.size() > 2 ? t[2] : Tensor());
    };
    c.bytes = Floats((variant > 0 ? 5.0 : 3.0) * elements);
    cases->push_back(c);
  }
}

void AddRmsProps(int64_t elements, std::vector<KernelCase>* cases) {
  const Shape n{elements};
  for (int variant = 0; variant < 3; ++variant) {
    RmsPropOptions options;
    options.weight_decay = variant == 1 ? 0.01f : 0;
    options.momentum = variant == 0 ? 0 : 0.9f;
    options.epsilon_inside_root = variant == 2;
    options.epsilon = variant == 2 ? 1 : 1e-6f;
    KernelCase c;
    c.name = absl::StrCat("RmsProp",
                          variant == 0   ? ""
                          : variant == 1 ? "Momentum"
                                         : "InsideRoot",
                          "/", elements);
    c.error_terms = 8;
    c.magnitude = &SumOfLargest;
    c.tensors = {{n, kAdded}, {n}, {n, kAdded, 1, true}};
    if (variant > 0) c.tensors.push_back({n, kAdded});
    c.run = [options](Backend* be, const Tensors& t) {
      be->optimizer().RmsProp(options, t[0], t[1], t[2], t.size() > 3 ? t[3] : Tensor());
    };
    c.bytes = Floats((variant > 0 ? 7.0 : 5.0) * elements);
    cases->push_back(c);
  }
}

void AddClipping(int64_t elements, std::vector<KernelCase>* cases) {
  KernelCase c;  // a sum in double, rounded once
  c.name = absl::StrCat("SumOfSquares/", elements);
  c.tensors = {{{elements}}, {{1}, kOut}};
  c.run = [](Backend* be, const Tensors& t) {
    SetHostValues(t[1], {static_cast<float>(be->optimizer().SumOfSquares(t[0]))});
  };
  c.bytes = Floats(elements);
  cases->push_back(c);
  c.name = absl::StrCat("Scale/", elements);
  c.tensors = {{{elements}, kAdded}};
  c.run = [](Backend* be, const Tensors& t) { be->optimizer().Scale(t[0], 0.7f); };
  c.bytes = Floats(2.0 * elements);
  cases->push_back(c);
}

}  // namespace

void AddOptimizerCases(CaseSize size, std::vector<KernelCase>* cases) {
  AddAdams(size, cases);
  for (int64_t n : ElementCounts(size)) {
    AddSgds(n, cases);
    AddRmsProps(n, cases);
    AddClipping(n, cases);
  }
}

}  // namespace pipelab
