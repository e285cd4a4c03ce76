// Rows along edges (GraphKernels).
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"

namespace pipelab {
namespace {

struct BlockShape {
  int64_t sources, targets, most_degree, width, heads;
  // The degree of target t: none for every fifth one.
  int64_t Degree(int64_t t) const { return t % 5 == 4 ? 0 : 1 + t * 7 % most_degree; }
  int64_t Edges() const {
    int64_t sum = 0;
    for (int64_t t = 0; t < targets; ++t) sum += Degree(t);
    return sum;
  }
};

std::vector<BlockShape> BlockShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 1, 1, 1}, {9, 4, 3, 6, 2}, {17, 17, 5, 12, 4}};
    case CaseSize::kMedium:
      return {{300, 130, 17, 72, 4}};
    case CaseSize::kLarge:
      return {{20000, 4000, 10, 256, 4}};
  }
  return {};
}

// The last five tensors of a case: an index, which `prepare` fills in.
std::vector<CaseTensor> WithIndex(std::vector<CaseTensor> tensors, const BlockShape& s) {
  for (int64_t n : {s.targets + 1, s.Edges(), s.Edges(), s.sources + 1, s.Edges()}) {
    tensors.push_back({{n}, TensorRole::kInput, 1, false, /*index_bound=*/1});
  }
  return tensors;
}

GraphIndex IndexOf(const BlockShape& s, const Tensors& t) {
  const size_t n = t.size();
  GraphIndex index;
  index.num_sources = s.sources;
  index.num_targets = s.targets;
  index.num_edges = s.Edges();
  index.offsets_T1 = t[n - 5];
  index.sources_E = t[n - 4];
  index.targets_E = t[n - 3];
  index.back_offsets_S1 = t[n - 2];
  index.back_edges_E = t[n - 1];
  return index;
}

void FillIndex(const BlockShape& s, const GraphIndex& index) {
  int64_t e = 0;
  for (int64_t t = 0; t < s.targets; ++t) {
    index.offsets_T1.i32()[t] = static_cast<int32_t>(e);
    for (int64_t i = 0; i < s.Degree(t); ++i, ++e) {
      index.sources_E.i32()[e] = static_cast<int32_t>((t * 31 + i * 5 + 1) % s.sources);
      index.targets_E.i32()[e] = static_cast<int32_t>(t);
    }
  }
  index.offsets_T1.i32()[s.targets] = static_cast<int32_t>(e);
  int32_t place = 0;
  for (int64_t source = 0; source < s.sources; ++source) {
    index.back_offsets_S1.i32()[source] = place;
    for (int64_t i = 0; i < e; ++i) {
      if (index.sources_E.i32()[i] == source) {
        index.back_edges_E.i32()[place++] = static_cast<int32_t>(i);
      }
    }
  }
  index.back_offsets_S1.i32()[s.sources] = place;
}

using GraphRun = std::function<void(GraphKernels*, const GraphIndex&, const Tensors&)>;

// One with an index; sums of `terms` numbers.
KernelCase GraphCaseOf(const char* kernel, const BlockShape& s, std::vector<CaseTensor> tensors,
                       int64_t terms, double numbers, GraphRun run) {
  KernelCase c;
  c.name = absl::StrCat(kernel, "/", s.sources, "->", s.targets, "/", s.Edges(), "edges/", s.width,
                        "/", s.heads, "heads");
  c.tensors = WithIndex(std::move(tensors), s);
  c.prepare = [s](Backend*, const Tensors& t) { FillIndex(s, IndexOf(s, t)); };
  c.run = [s, run = std::move(run)](Backend* be, const Tensors& t) {
    const GraphIndex index = IndexOf(s, t);
    CheckGraphIndex("case", index);
    run(&be->graphs(), index, t);
  };
  c.error_model = ErrorModel::kMultilinear;
  c.error_terms = terms;
  c.bytes = Floats(numbers);
  return c;
}

void AddAggregates(const BlockShape& s, std::vector<KernelCase>* cases) {
  const Shape x{s.sources, s.width}, y{s.targets, s.width};
  const double numbers = double(s.Edges() + s.targets) * s.width;
  for (const auto& [name, mode] : {std::pair{"Sum", AggregateMode::kSum},
                                   {"Mean", AggregateMode::kMean},
                                   {"SelfAndSum", AggregateMode::kSelfAndSum}}) {
    cases->push_back(
        GraphCaseOf(absl::StrCat("Aggregate", name).c_str(), s, {{x}, {y, kOut}}, s.most_degree + 2,
                    numbers, [mode = mode](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
                      g->Aggregate(i, mode, t[0], t[1]);
                    }));
    cases->back().in_bfloat16 = CaseInBFloat16{};
    cases->push_back(GraphCaseOf(
        absl::StrCat("AggregateGradient", name).c_str(), s, {{y}, {x, kOut}}, s.Edges() + 2,
        numbers, [mode = mode](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
          g->AggregateGradient(i, mode, t[0], t[1]);
        }));
    cases->back().in_bfloat16 = CaseInBFloat16{};
  }
}

void AddRows(const BlockShape& s, std::vector<KernelCase>* cases) {
  const Shape x{s.sources, s.width}, y{s.targets, s.width};
  const CaseTensor ids{{s.targets}, TensorRole::kInput, 1, false, static_cast<int32_t>(s.sources)};
  KernelCase c = GraphCaseOf(
      "GatherRows", s, {ids, {x}, {y, kOut}}, 1, 2.0 * s.targets * s.width,
      [](GraphKernels* g, const GraphIndex&, const Tensors& t) { g->Gather(t[0], t[1], t[2]); });
  c.in_bfloat16 = CaseInBFloat16{{}, 0};
  cases->push_back(c);
  KernelCase d = GraphCaseOf("DropRows", s, {ids, {y}, {y, kOut}}, 1, 2.0 * s.targets * s.width,
                             [](GraphKernels* g, const GraphIndex&, const Tensors& t) {
                               g->DropRows(t[0], {0.3f, CounterRng(3, "rows"), 5}, t[1], t[2]);
                             });
  d.in_bfloat16 = CaseInBFloat16{};
  cases->push_back(d);
}

void AddHeads(const BlockShape& s, std::vector<KernelCase>* cases) {
  const Shape x{s.sources, s.width}, w{s.width}, y{s.sources, s.heads};
  const double numbers = double(s.sources) * s.width;
  cases->push_back(GraphCaseOf("HeadProducts", s, {{x}, {w}, {y, kOut}}, s.width / s.heads + 1,
                               numbers, [](GraphKernels* g, const GraphIndex&, const Tensors& t) {
                                 g->HeadProducts(t[0], t[1], t[2]);
                               }));
  cases->push_back(GraphCaseOf("HeadProductsInputGradient", s, {{y}, {w}, {x, kAdded}}, 2,
                               2 * numbers,
                               [](GraphKernels* g, const GraphIndex&, const Tensors& t) {
                                 g->HeadProductsInputGradient(t[0], t[1], t[2]);
                               }));
  cases->push_back(GraphCaseOf("HeadProductsWeightGradient", s, {{x}, {y}, {w, kAdded}},
                               s.sources + 1, numbers,
                               [](GraphKernels* g, const GraphIndex&, const Tensors& t) {
                                 g->HeadProductsWeightGradient(t[0], t[1], t[2]);
                               }));
}

void AddAttention(const BlockShape& s, std::vector<KernelCase>* cases) {
  constexpr float kSlope = 0.2f;
  const Shape source{s.sources, s.heads}, target{s.targets, s.heads}, a{s.Edges(), s.heads},
      x{s.sources, s.width}, y{s.targets, s.width};
  const double numbers = double(s.Edges()) * s.width;
  // Exponents below 16 err by as many roundings more; FastExp by four.
  KernelCase softmax = GraphCaseOf("EdgeSoftmax", s, {{source}, {target}, {a, kOut}},
                                   s.most_degree + 24, 3.0 * s.Edges() * s.heads,
                                   [](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
                                     g->EdgeSoftmax(i, kSlope, t[0], t[1], t[2]);
                                   });
  softmax.error_model = ErrorModel::kSmooth;
  cases->push_back(softmax);
  // a is not of this softmax, but as large: differences of sums of `degree` terms, and sums of
  // these.
  KernelCase back =
      GraphCaseOf("EdgeSoftmaxGradient", s,
                  {{source},
                   {target},
                   {a, TensorRole::kInput, 0.5, true},
                   {a, kAdded},
                   {source, kOut},
                   {target, kOut}},
                  s.Edges() + 2 * s.most_degree, 5.0 * s.Edges() * s.heads,
                  [](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
                    g->EdgeSoftmaxGradient(i, kSlope, t[0], t[1], t[2], t[3], t[4], t[5]);
                  });
  back.error_model = ErrorModel::kSmooth;
  back.magnitude = [s](const Tensors& t) {
    const double degree = static_cast<double>(s.most_degree), most = MaxAbs(t[2]);
    return degree * most * 4.5 * (1 + degree * most);  // 4.5: the largest |da| of these sizes
  };
  cases->push_back(back);
  cases->push_back(GraphCaseOf("Weighed", s, {{a}, {x}, {y, kOut}}, s.most_degree + 1, numbers,
                               [](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
                                 g->Weighed(i, t[0], t[1], t[2]);
                               }));
  cases->push_back(GraphCaseOf("WeighedGradient", s, {{a}, {x}, {y}, {a, kOut}, {x, kOut}},
                               std::max(s.Edges(), s.width) + 1, 2 * numbers,
                               [](GraphKernels* g, const GraphIndex& i, const Tensors& t) {
                                 g->WeighedGradient(i, t[0], t[1], t[2], t[3], t[4]);
                               }));
}

}  // namespace

void AddGraphCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const BlockShape& s : BlockShapes(size)) {
    AddAggregates(s, cases);
    AddRows(s, cases);
    AddHeads(s, cases);
    AddAttention(s, cases);
  }
}

}  // namespace pipelab
