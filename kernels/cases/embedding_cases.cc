#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"
#include "kernels/cases/image_shapes.h"

namespace pipelab {
namespace {

CaseTensor Numbers(Shape shape, int64_t bound) {
  return {std::move(shape), TensorRole::kInput, 1, false, static_cast<int32_t>(bound)};
}

void AddLookups(CaseSize size, std::vector<KernelCase>* cases) {
  for (const EmbeddingShape& s : EmbeddingShapes(size)) {
    const int64_t m = s.samples * s.tokens;
    const CaseTensor tokens = Numbers({m}, s.vocabulary);
    const Shape table{s.vocabulary, s.width}, positions{s.tokens, s.width}, y{m, s.width};
    const std::string shape =
        absl::StrCat(s.samples, "x", s.tokens, "x", s.vocabulary, "x", s.width);
    KernelCase c;
    c.error_model = ErrorModel::kMultilinear;
    c.error_terms = 2;
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("Embedding/", shape);
    c.tensors = {tokens, {table}, {positions}, {y, kOut}};
    c.run = [](Backend* be, const Tensors& t) { be->embedding().Lookup(t[0], t[1], t[2], t[3]); };
    c.bytes = Floats(3.0 * m * s.width);
    cases->push_back(c);
    c.error_terms = m + 1;
    c.in_bfloat16 = CaseInBFloat16{{2, 3}};
    c.name = absl::StrCat("EmbeddingWeightGradient/", shape);
    c.tensors = {tokens, {y}, {table, kAdded}, {positions, kAdded}};
    c.run = [](Backend* be, const Tensors& t) {
      be->embedding().LookupWeightGradient(t[0], t[1], t[2], t[3]);
    };
    c.bytes = Floats(5.0 * m * s.width);
    cases->push_back(c);
  }
}

// A table's rows from the middle of the ids on: some tokens are of other devices.
void AddLookupParts(CaseSize size, std::vector<KernelCase>* cases) {
  for (const EmbeddingShape& s : EmbeddingShapes(size)) {
    for (bool positions : {false, true}) {
      const int64_t m = s.samples * s.tokens, first = s.vocabulary / 2;
      const CaseTensor tokens = Numbers({m}, 2 * s.vocabulary);
      const Shape table{s.vocabulary, s.width}, places{s.tokens, s.width}, y{m, s.width};
      const std::string shape = absl::StrCat(s.samples, "x", s.tokens, "x", s.vocabulary, "x",
                                             s.width, positions ? "/positions" : "");
      KernelCase c;
      c.error_model = ErrorModel::kMultilinear;
      c.error_terms = 2;
      c.in_bfloat16 = CaseInBFloat16{};
      c.name = absl::StrCat("EmbeddingPart/", shape);
      c.tensors = {tokens, {table}, {places}, {y, kOut}};
      c.run = [first, positions](Backend* be, const Tensors& t) {
        be->embedding().LookupPart(t[0], first, t[1], positions ? t[2] : Tensor(), t[3]);
      };
      c.bytes = Floats((positions ? 3.0 : 2.0) * m * s.width);
      cases->push_back(c);
      c.error_terms = m + 1;
      c.in_bfloat16 = CaseInBFloat16{{2, 3}};
      c.name = absl::StrCat("EmbeddingPartWeightGradient/", shape);
      c.tensors = {tokens, {y}, {table, kAdded}, {places, kAdded}};
      c.run = [first, positions](Backend* be, const Tensors& t) {
        be->embedding().LookupPartWeightGradient(t[0], first, t[1], t[2],
                                                 positions ? t[3] : Tensor());
      };
      c.bytes = Floats((positions ? 5.0 : 3.0) * m * s.width);
      cases->push_back(c);
    }
  }
}

void AddBags(CaseSize size, std::vector<KernelCase>* cases) {
  for (const BagShape& s : BagShapes(size)) {
    const CaseTensor ids = Numbers({s.samples, s.bag}, s.rows);
    const Shape table{s.rows, s.width}, y{s.samples, s.width};
    const std::string shape = absl::StrCat(s.samples, "x", s.bag, "x", s.rows, "x", s.width,
                                           s.mode == BagMode::kMean ? "/mean" : "/sum");
    const BagMode mode = s.mode;
    KernelCase c;
    c.error_model = ErrorModel::kMultilinear;
    c.error_terms = s.bag + 1;
    c.in_bfloat16 = CaseInBFloat16{};
    c.name = absl::StrCat("EmbeddingBag/", shape);
    c.tensors = {ids, {table}, {y, kOut}};
    c.run = [mode](Backend* be, const Tensors& t) { be->embedding().Bag(t[0], t[1], mode, t[2]); };
    c.bytes = Floats(double(s.samples) * s.bag * s.width);
    cases->push_back(c);
    c.error_terms = s.samples * s.bag + 1;
    c.in_bfloat16 = CaseInBFloat16{{2}};
    c.name = absl::StrCat("EmbeddingBagWeightGradient/", shape);
    c.tensors = {ids, {y}, {table, kAdded}};
    c.run = [mode](Backend* be, const Tensors& t) {
      be->embedding().BagWeightGradient(t[0], t[1], mode, t[2]);
    };
    c.bytes *= 2;
    cases->push_back(c);
  }
}

}  // namespace

void AddEmbeddingCases(CaseSize size, std::vector<KernelCase>* cases) {
  AddLookups(size, cases);
  AddLookupParts(size, cases);
  AddBags(size, cases);
}

}  // namespace pipelab
