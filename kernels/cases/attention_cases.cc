#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kernels/cases/attention_roundings.h"
#include "kernels/cases/case_groups.h"

namespace pipelab {
namespace {

// A score of unit normal q and k errs like its sum of head_size terms, times the sum of absolute
// products, which is about 0.64 sqrt(head_size) after the scale; probabilities take that over as a
// relative error, and the sums over keys come after. Scale: 1 + sqrt(head_size) forward; twice in
// the gradient, whose scores' gradient is a difference of two such sums. What bfloat16 adds to that
// inside is attention_roundings.h.
void AddSelfAttentions(CaseSize size, std::vector<KernelCase>* cases) {
  for (const AttentionShape& s : AttentionShapes(size)) {
    const int64_t m = s.samples * s.tokens, width = s.heads * s.head_size, n = s.num_queries();
    const Shape qkv{m, width + 2 * s.kv_width()}, out{s.samples * n, width},
        lse{s.samples, s.heads, n};
    const std::string shape =
        absl::StrCat(s.samples, "x", s.tokens, "x", s.heads, "x", s.head_size,
                     s.causal                ? "/causal"
                     : s.key_lengths.empty() ? "/full"
                                             : "/padded",
                     s.queries > 0 ? absl::StrCat("/", s.first_query, "-", s.end_query()) : "",
                     s.kv_heads > 0 ? absl::StrCat("/shared", s.kv_heads) : "",
                     s.window > 0 ? absl::StrCat("/window", s.window) : "",
                     s.key_tile > 0 ? absl::StrCat("/tile", s.key_tile) : "");
    // Pairs of a query and a key that it sees.
    const double pairs = double(s.samples) * s.heads *
                         (s.window > 0 ? n * std::min(s.window, s.tokens)
                          : s.causal   ? n * (2 * s.first_query + n + 1) / 2
                                       : n * s.tokens);
    KernelCase c;
    c.error_terms = std::max(s.tokens, s.head_size);
    c.error_scale = 1 + std::sqrt(static_cast<double>(s.head_size));
    c.in_bfloat16 = CaseInBFloat16{{2}, 1, nullptr, {}, [s](const Tensors& t, size_t) {
                                     return OutRoundings(CallOf(s), t[0], t[0], t[2]);
                                   }};
    c.name = absl::StrCat("Attention/", shape);
    c.tensors = {{qkv}, {out, kOut}, {lse, kOut}};
    c.run = [s](Backend* be, const Tensors& t) { be->attention().Forward(s, t[0], t[1], t[2]); };
    c.flops = 4 * pairs * s.head_size;
    const double read = 2.0 * s.samples * s.num_keys() * s.kv_width(),
                 own = 1.0 * s.samples * n * width;
    c.bytes = Floats(read + 2 * own);  // k, v; q, out
    cases->push_back(c);

    c.error_scale *= 2;
    c.in_bfloat16 = CaseInBFloat16{{3}, 1, nullptr, {}, [s](const Tensors& t, size_t) {
                                     const GradientRoundings r = AttentionGradientRoundings(
                                         CallOf(s), t[0], t[1], t[1], t[2], t[3]);
                                     std::vector<double> both = r.dq;  // one tensor's parts
                                     for (size_t i = 0; i < both.size(); ++i) both[i] += r.dkv[i];
                                     return both;
                                   }};
    c.name = absl::StrCat("AttentionGradient/", shape);
    // A slice of the queries adds to the gradients of k and v.
    c.tensors = {{out}, {qkv}, {out}, {lse}, {qkv, s.queries > 0 ? kAdded : kOut}};
    c.prepare = [s](Backend* be, const Tensors& t) {
      be->attention().Forward(s, t[1], t[2], t[3]);
    };
    c.run = [s](Backend* be, const Tensors& t) {
      be->attention().Gradient(s, t[0], t[1], t[2], t[3], t[4]);
    };
    c.flops = 10 * pairs * s.head_size;
    c.bytes = Floats(2 * read + 4 * own);
    cases->push_back(c);
  }
}

// In place: what a row has beside its heads stays. A turn is a product of two numbers each with a
// cosine and a sine, which err by some units.
void AddRotations(CaseSize size, std::vector<KernelCase>* cases) {
  const int64_t large = size == CaseSize::kSmall ? 1 : 8;
  for (const RotaryShape& s :
       {RotaryShape{2, 5 * large, 0, 4, 6}, RotaryShape{1, 17 * large, 0, 6, 32},
        RotaryShape{3, 4 * large, 100000, 2, 2}, RotaryShape{2, 5 * large, 3, 3, 4, 10000, 7},
        RotaryShape{2, 9 * large, 8191, 3, 128, 500000}}) {
    for (const bool back : {false, true}) {
      KernelCase c;
      c.name = absl::StrCat(back ? "RotateBack/" : "Rotate/", s.samples, "x", s.tokens, "x",
                            s.heads, "x", s.head_size, "/from", s.first_token,
                            s.stride > 0 ? absl::StrCat("/stride", s.stride) : "");
      c.tensors = {{{s.samples * s.tokens, s.heads * s.head_stride() + s.head_size}, kAdded}};
      c.run = [s, back](Backend* be, const Tensors& t) { be->attention().Rotate(s, back, t[0]); };
      c.error_terms = 4;
      c.bytes = Floats(2.0 * s.samples * s.tokens * s.width());
      c.in_bfloat16 = CaseInBFloat16{};
      cases->push_back(c);
    }
  }
}

// What a row has behind the head stays. Sums over heads.
void AddSharedHeads(CaseSize size, std::vector<KernelCase>* cases) {
  const int64_t rows = size == CaseSize::kSmall ? 5 : 300, heads = 7, own = 6, columns = 10;
  KernelCase c;
  c.name = absl::StrCat("ShareHead/", rows, "x", heads);
  c.tensors = {{{rows, own}}, {{rows * heads, columns}, kAdded}};
  c.run = [](Backend* be, const Tensors& t) { be->attention().ShareHead(t[0], t[1]); };
  c.bytes = Floats(2.0 * rows * heads * own);
  c.in_bfloat16 = CaseInBFloat16{};
  cases->push_back(c);
  c.name = absl::StrCat("ShareHeadGradient/", rows, "x", heads);
  c.tensors = {{{rows * heads, columns}}, {{rows, own}, kOut}};
  c.error_terms = heads;
  c.run = [](Backend* be, const Tensors& t) { be->attention().ShareHeadGradient(t[0], t[1]); };
  cases->push_back(c);
}

// The same bounds.
void AddCrossAttentions(CaseSize size, std::vector<KernelCase>* cases) {
  for (const CrossAttentionShape& s : CrossAttentionShapes(size)) {
    const Shape q{s.samples * s.queries, s.row()}, kv{s.samples * s.keys, s.kv_row()};
    const Shape out{s.samples * s.queries, s.out_width()};
    const Shape lse{s.samples, s.heads, s.queries};
    const std::string shape = absl::StrCat(
        s.samples, "x", s.queries, "x", s.keys, "x", s.heads, "x", s.head_size,
        s.causal                ? absl::StrCat("/causal", s.first_query)
        : s.key_lengths.empty() ? "/full"
                                : "/padded",
        s.kv_heads > 0 ? absl::StrCat("/shared", s.kv_heads) : "",
        s.q_row > 0 ? absl::StrCat("/row", s.q_row) : "", s.adds_keys ? "/adds" : "",
        s.adds_queries ? "/to_both" : "", s.window > 0 ? absl::StrCat("/window", s.window) : "",
        s.value_size > 0 ? absl::StrCat("/values", s.value_size) : "",
        s.key_tile > 0 ? absl::StrCat("/tile", s.key_tile) : "");
    const double pairs =
        double(s.samples) * s.heads * s.queries *
        (s.window > 0                         ? double(std::min(s.window, s.keys))
         : s.causal && s.first_query < s.keys ? s.first_query + 0.5 * double(s.queries + 1)
                                              : double(s.keys));
    const int64_t columns = s.head_size + (s.value_size == 0 ? s.head_size : s.value_size);
    KernelCase c;
    c.error_terms = std::max({s.keys, s.head_size, s.value_size});
    c.error_scale = 1 + std::sqrt(static_cast<double>(s.head_size));
    c.in_bfloat16 = CaseInBFloat16{{3}, 1, nullptr, {}, [s](const Tensors& t, size_t) {
                                     return OutRoundings(CallOf(s), t[0], t[1], t[3]);
                                   }};
    c.name = absl::StrCat("CrossAttention/", shape);
    c.tensors = {{q}, {kv}, {out, kOut}, {lse, kOut}};
    c.run = [s](Backend* be, const Tensors& t) {
      be->attention().CrossForward(s, t[0], t[1], t[2], t[3]);
    };
    c.flops = 2 * pairs * columns;
    c.bytes = Floats(double(NumElements(kv)) + 2.0 * NumElements(out));
    cases->push_back(c);

    c.error_scale *= 2;
    c.error_terms = std::max(c.error_terms, s.queries);
    c.in_bfloat16 = CaseInBFloat16{{4}, 1, nullptr, {}, [s](const Tensors& t, size_t which) {
                                     GradientRoundings r = AttentionGradientRoundings(
                                         CallOf(s), t[0], t[1], t[2], t[3], t[4]);
                                     return which == 5 ? r.dq : r.dkv;
                                   }};
    c.name = absl::StrCat("CrossAttentionGradient/", shape);
    // What a row has behind q stays.
    c.tensors = {{out},
                 {q},
                 {kv},
                 {out},
                 {lse},
                 {q, s.q_row > 0 || s.adds_queries ? kAdded : kOut},
                 {kv, s.adds_keys ? kAdded : kOut}};
    c.prepare = [s](Backend* be, const Tensors& t) {
      be->attention().CrossForward(s, t[1], t[2], t[3], t[4]);
    };
    c.run = [s](Backend* be, const Tensors& t) {
      be->attention().CrossGradient(s, t[0], t[1], t[2], t[3], t[4], t[5], t[6]);
    };
    c.flops = 5 * pairs * columns;
    c.bytes *= 2;
    cases->push_back(c);
  }
}

// Two weighted numbers each, whose weights are exponentials of differences of log-sum-exps.
void AddMerges(CaseSize size, std::vector<KernelCase>* cases) {
  for (const auto& [n, m, heads, columns] :
       {std::make_tuple(1, 1, 1, 1), {3, 5, 2, 3}, {70, 70, 4, 16}, {130, 200, 3, 64}}) {
    if ((size == CaseSize::kSmall) != (n < 10)) continue;
    KernelCase c;
    c.name = absl::StrCat("MergeAttention/", n, "of", m, "x", heads, "x", columns);
    c.tensors = {
        {{n, heads * columns}}, {{heads, n}}, {{m, heads * columns}, kAdded}, {{heads, m}, kAdded}};
    c.run = [](Backend* be, const Tensors& t) { be->attention().Merge(t[0], t[1], t[2], t[3]); };
    c.error_terms = 16;  // exponents of some units, whose roundings are relative errors
    c.bytes = Floats(3.0 * n * heads * columns);
    c.in_bfloat16 = CaseInBFloat16{{1, 3}};
    cases->push_back(c);
  }
}

}  // namespace

void AddAttentionCases(CaseSize size, std::vector<KernelCase>* cases) {
  AddSelfAttentions(size, cases);
  AddRotations(size, cases);
  AddSharedHeads(size, cases);
  AddCrossAttentions(size, cases);
  AddMerges(size, cases);
}

}  // namespace pipelab
