// Mixtures of experts (ExpertKernels).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cases/case_groups.h"

namespace pipelab {
namespace {

using ExpertRun = std::function<void(Backend*, const Tensors&)>;

// The last five tensors of a case that takes a routing: its logits, of which the reference makes
// it, and its own.
std::vector<CaseTensor> WithRouting(std::vector<CaseTensor> tensors, const RouterShape& s) {
  const auto numbers = [](int64_t n) {
    return CaseTensor{{n}, TensorRole::kInput, 1, false, /*index_bound=*/1};
  };
  const int64_t choices = s.rows() * s.choices();
  tensors.push_back({{s.rows(), s.experts}});
  tensors.push_back({{s.rows(), s.choices()}});
  tensors.push_back(numbers(choices));
  tensors.push_back(numbers(choices));
  tensors.push_back(numbers(s.groups() + 1));
  return tensors;
}
const Tensor& LogitsOf(const Tensors& t) { return t[t.size() - 5]; }
Routing RoutingOf(const Tensors& t) {
  const size_t n = t.size();
  return {t[n - 4], t[n - 3], t[n - 2], t[n - 1]};
}

ExpertRun Prepared(const RouterShape& s) {
  return [s](Backend* be, const Tensors& t) { be->experts().Route(s, LogitsOf(t), RoutingOf(t)); };
}

// One that is no input of a case.
Routing NewRouting(Backend* be, const RouterShape& s, const Tensor& weights) {
  const auto ids = [be](int64_t n) {
    return be->arena().Allocate(DataType::kInt32, {n}, MemoryKind::kActivation);
  };
  const int64_t choices = s.rows() * s.choices();
  return {weights, ids(choices), ids(choices), ids(s.groups() + 1)};
}

// What a case says, without its tensors.
KernelCase ExpertCaseOf(const char* kernel, const ExpertShape& e, ExpertRun run, int64_t terms) {
  const RouterShape& s = e.router;
  KernelCase c;
  c.name = absl::StrCat(kernel, "/", s.samples, "x", s.tokens, "/", s.chosen, "of", s.experts, "+",
                        s.shared, s.scores == RouterScores::kSigmoid ? "/sigmoid" : "",
                        s.normalized ? "" : "/not_normalized",
                        s.capacity > 0 ? absl::StrCat("/at_most", s.capacity) : "",
                        s.nodes > 0 ? absl::StrCat("/", s.most_nodes, "of", s.nodes, "nodes") : "",
                        "/", e.width, "x", e.inner);
  c.run = std::move(run);
  c.error_terms = terms;
  return c;
}

// Where choices go is seen in the rows that go there.
void AddRoutes(const ExpertShape& e, std::vector<KernelCase>* cases) {
  const RouterShape s = e.router;
  KernelCase c = ExpertCaseOf(
      "Route", e,
      [s](Backend* be, const Tensors& t) {
        const Routing routing = NewRouting(be, s, t[2]);
        be->experts().Route(s, t[0], routing);
        be->experts().Gather(routing, t[1], t[3]);
      },
      s.experts + 5);
  c.tensors = {{{s.rows(), s.experts}},
               {{s.rows(), e.width}},
               {{s.rows(), s.choices()}, kOut},
               {{s.rows() * s.choices(), e.width}, kAdded}};
  c.bytes = Floats(2.0 * s.rows() * s.choices() * e.width);
  c.in_bfloat16 = CaseInBFloat16{{2}};
  cases->push_back(c);

  // Weights are sums of scores below 1 over others' sums, so their slopes are the gradient's.
  constexpr float kBalance = 0.3f;
  KernelCase gradient = ExpertCaseOf(
      "RouteGradient", e,
      [s](Backend* be, const Tensors& t) {
        be->experts().RouteGradient(s, t[0], LogitsOf(t), RoutingOf(t), kBalance, t[1]);
      },
      2 * s.experts + 5);
  gradient.magnitude = [s](const Tensors& t) {
    return 4 * (double{s.scale} * MaxAbs(t[0]) + double{kBalance} * static_cast<double>(s.experts));
  };
  gradient.tensors = WithRouting({{{s.rows(), s.choices()}}, {{s.rows(), s.experts}, kOut}}, s);
  gradient.prepare = Prepared(s);
  gradient.in_bfloat16 = CaseInBFloat16{{0, 3}};
  gradient.bytes = Floats(2.0 * s.rows() * s.experts);
  cases->push_back(gradient);
}

void AddRest(const ExpertShape& e, std::vector<KernelCase>* cases) {
  const RouterShape s = e.router;
  const int64_t rows = s.rows() * s.choices(), f = e.inner, c = e.width;
  const Shape tokens{s.rows(), c}, all{rows, c}, inner{rows, f}, weights{s.groups(), c, f};
  const auto add = [&](const char* kernel, std::vector<CaseTensor> tensors, ExpertRun run,
                       int64_t terms, std::vector<size_t> floats, double numbers,
                       double flops = 0) {
    KernelCase it = ExpertCaseOf(kernel, e, std::move(run), terms);
    const size_t own = tensors.size();
    it.tensors = WithRouting(std::move(tensors), s);
    it.prepare = Prepared(s);
    it.error_model = ErrorModel::kMultilinear;
    floats.push_back(own + 1);  // the routing's weights
    it.in_bfloat16 = CaseInBFloat16{std::move(floats)};
    it.bytes = Floats(numbers);
    it.flops = flops;
    cases->push_back(std::move(it));
  };
  add(
      "SumOfChoices", {{all}, {tokens, kOut}},
      [](Backend* be, const Tensors& t) { be->experts().SumOfChoices(RoutingOf(t), t[0], t[1]); },
      s.choices(), {}, double(rows + s.rows()) * c);
  add(
      "Weigh", {{inner, kAdded}},
      [](Backend* be, const Tensors& t) { be->experts().Weigh(RoutingOf(t), t[0]); }, 1, {},
      2.0 * rows * f);
  add(
      "WeighGradient", {{inner}, {inner, kAdded}, {{s.rows(), s.choices()}, kOut}},
      [](Backend* be, const Tensors& t) {
        be->experts().WeighGradient(RoutingOf(t), t[0], t[1], t[2]);
      },
      f, {2}, 3.0 * rows * f);
  const double numbers = double(rows) * (c + f) + double(s.groups()) * c * f;
  const double flops = 2.0 * rows * c * f;
  add(
      "ExpertProduct", {{all}, {weights}, {inner, kAdded}},
      [](Backend* be, const Tensors& t) { be->experts().Product(RoutingOf(t), t[0], t[1], t[2]); },
      c, {}, numbers, flops);
  add(
      "ExpertProductInputGradient", {{inner}, {weights}, {all, kAdded}},
      [](Backend* be, const Tensors& t) {
        be->experts().ProductInputGradient(RoutingOf(t), t[0], t[1], t[2]);
      },
      f, {}, numbers, flops);
  add(
      "ExpertProductWeightGradient", {{all}, {inner}, {weights, kAdded}},
      [](Backend* be, const Tensors& t) {
        be->experts().ProductWeightGradient(RoutingOf(t), t[0], t[1], t[2]);
      },
      rows + 1, {2}, numbers, flops);
}

}  // namespace

void AddExpertCases(CaseSize size, std::vector<KernelCase>* cases) {
  for (const ExpertShape& e : ExpertShapes(size)) {
    AddRoutes(e, cases);
    AddRest(e, cases);
  }
}

}  // namespace pipelab
