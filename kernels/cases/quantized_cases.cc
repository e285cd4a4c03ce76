// Products with 4-bit weights (QuantizedKernels).
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {
namespace {

// The largest product of a number of the book and a scale.
double LargestWeight(const Int4Book& book, const Tensor& scales) {
  double most = 0;
  for (float number : book) most = std::max(most, std::abs(double{number}));
  return most * MaxAbs(scales);
}

KernelCase QuantizedCaseOf(const QuantizedShape& q, Int4Math math, const char* name) {
  const Int4Shape s = q.shape;
  const Int4Book book = q.normal_float ? NormalFloat4() : SignedInt4();
  KernelCase c;
  c.name = absl::StrCat("Int4Product/", name, "/", q.m, "x", s.k, "x", s.n, "/", s.group,
                        q.normal_float ? "/nf4" : "");
  // Codes are any numbers: a bit pattern of 32 is eight of them.
  c.tensors = {{{q.m, s.k}},
               {{s.panels(), s.units(), kInt4Columns}, TensorRole::kInput, 1, false, 0x7fffffff},
               {{s.panels(), s.groups(), kInt4Columns}, TensorRole::kInput, 0.1, true},
               {{q.m, s.n}, kOut}};
  c.run = [=](Backend* be, const Tensors& t) {
    const Tensor scales =
        be->arena().Allocate(DataType::kBFloat16, t[2].shape(), MemoryKind::kActivation);
    SetHostValues(scales, HostValues(t[2]));
    be->quantized().Product(math, t[0], {s, book, t[1], scales}, t[3]);
  };
  c.error_terms = s.k + s.spans() + 3;
  // The products are independent, so their root mean square counts; three times it is rarely
  // passed.
  c.magnitude = [=](const Tensors& t) {
    return 3 * LargestWeight(book, t[2]) * std::sqrt(static_cast<double>(s.k)) + 1e-30;
  };
  c.in_bfloat16 = CaseInBFloat16{{2}};
  c.flops = 2.0 * static_cast<double>(q.m * s.k * s.n);
  c.bytes = Floats(static_cast<double>(q.m * (s.k + s.n))) + 0.5 * static_cast<double>(s.k * s.n);
  return c;
}

}  // namespace

void AddQuantizedCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const QuantizedShape& shape : QuantizedShapes(size)) {
    cases->push_back(QuantizedCaseOf(shape, Int4Math::kFloat32, "float32"));
    cases->push_back(QuantizedCaseOf(shape, Int4Math::kBFloat16, "bfloat16"));
    cases->push_back(QuantizedCaseOf(shape, Int4Math::kInt8, "int8"));
  }
}

}  // namespace pipelab
