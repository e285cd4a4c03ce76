// The bytes of split layers are those of the order in which a device would allocate.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/graph/attention_workspace.h"
#include "models/graph/tensor_parallel.h"
#include "models/zoo/split_models.h"

namespace pipelab {
namespace {

// An order of allocations: what is there, and the most that it was.
class Heap {
 public:
  void Take(int64_t n) {
    now_ += n;
    peak_ = std::max(peak_, now_);
  }
  void Free(int64_t n) { now_ -= n; }
  Bytes now() const { return Bytes(4) * now_; }
  Bytes peak() const { return Bytes(4) * peak_; }

 private:
  int64_t now_ = 0, peak_ = 0;
};

// A group's gather: the own rows become all, in a tensor of their own.
void Gather(bool scattered, int64_t all, int64_t own, Heap* heap) {
  if (!scattered) return;
  heap->Take(all);
  heap->Free(own);
}

// A sum: in place, or scattered to the own rows.
void Sum(bool scattered, int64_t all, int64_t own, Heap* heap) {
  if (!scattered) return;
  heap->Take(own);
  heap->Free(all);
}

// What the layers that run allocate (models/layers/gpt_mlp.cc, gpt_attention.cc), each with its
// part, and with the group's sums and gathers.
struct Branch {
  TensorParallel split;
  int64_t samples = kSamples, tokens = kTargetTokens;
  bool dropout = false;

  int64_t m() const { return samples * tokens; }
  int64_t own() const { return split.scatters_rows() ? m() / split.degree : m(); }
  bool scattered() const { return split.scatters_rows(); }
};

// The heaps of a forward, and of an input part that a weight part follows at once (a fused
// backward): the most that there was before the weight part, and from there on.
struct Passes {
  Heap forward, backward;
  Bytes input_peak, input_end;

  void EndInput() {
    input_peak = backward.peak();
    input_end = backward.now();
  }
  // The first product's weight gradient, with the norm's output again.
  void NormAgain(const Branch& b) {
    backward.Take(b.own() * kHidden);
    Gather(b.scattered(), b.m() * kHidden, b.own() * kHidden, &backward);
  }
};

// `more`: gradients of other inputs, which the input part leaves beside dx.
void ExpectBytes(const LayerCosts& costs, const Passes& passes, Bytes dx, Bytes dy, Bytes more) {
  EXPECT_EQ(costs.forward_peak, passes.forward.peak());
  EXPECT_EQ(costs.kept + costs.output, passes.forward.now());
  EXPECT_EQ(costs.backward_input_peak, passes.input_peak);
  EXPECT_EQ(costs.kept_for_weight - costs.kept + dx - dy + more, passes.input_end);
  EXPECT_EQ(costs.backward_peak, passes.backward.peak());
}

// The branch's gradient: dy where nothing was dropped out of it.
void TakeBranchGradient(const Branch& b, Heap* heap) {
  const int64_t mc = b.m() * kHidden, own = b.own() * kHidden;
  if (b.dropout) heap->Take(own);
  if (b.scattered()) heap->Take(mc);
  if (b.scattered() && b.dropout) heap->Free(own);
}

// dy goes with the end of the input part, unless it is the branch's gradient.
void FreeOutputGradient(const Branch& b, Heap* heap) {
  if (b.dropout || b.scattered()) heap->Free(b.own() * kHidden);
}

void CheckMlp(const LayerSpec& layer, const Branch& b) {
  const int64_t mc = b.m() * kHidden, own = b.own() * kHidden,
                mf = b.m() * WholeAttribute(layer, "inner") / b.split.degree;
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());  // mean, rstd
  f.Take(own);          // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mf);  // h
  f.Free(mc);  // norm
  f.Take(mf);  // gelu
  f.Take(mc);  // branch
  f.Free(mf);  // gelu
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(mf);  // dh
  i.Take(mc);  // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mf + mc);  // h, dbranch
  i.Free(own);      // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, x, Bytes(0));
}

void CheckAttention(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, mc = b.m() * kHidden, own = b.own() * kHidden,
                mw = b.m() * kHidden / t, lse = b.m() * kHeads / t;
  const int64_t scratch = AttentionWorkspaceFloats(b.tokens, b.tokens);
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(3 * mw);  // qkv
  f.Free(mc);
  f.Take(mw);   // mix
  f.Take(lse);  // a number a row and head
  f.Take(scratch);
  f.Free(scratch);
  f.Take(mc);  // branch
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(4 * mw);  // dmix, dqkv
  i.Take(2 * scratch);
  i.Free(2 * scratch);
  i.Free(mw + lse + 3 * mw);  // dmix, qkv
  i.Take(mc);                 // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mw + mc);  // mix, dbranch
  i.Free(own);      // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, x, Bytes(0));
}

void CheckCross(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, mc = b.m() * kHidden, own = b.own() * kHidden,
                mw = b.m() * kHidden / t, lse = b.m() * kHeads / t;
  const int64_t nc = b.samples * layer.input_shapes[1][0] * kHidden, nw = nc / t,
                own_memory = b.scattered() ? nc / t : nc;
  const int64_t scratch = AttentionWorkspaceFloats(b.tokens, layer.input_shapes[1][0]);
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mw);  // q
  f.Free(mc);
  if (b.scattered()) f.Take(nc);  // the memory; its own rows stay, too
  f.Take(2 * nw);                 // kv
  if (b.scattered()) f.Free(nc);
  f.Take(mw);  // mix
  f.Take(lse);
  f.Take(scratch);
  f.Free(scratch);
  f.Take(mc);  // branch
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(2 * mw + 2 * nw);  // dmix, dq, dkv
  i.Take(2 * scratch);
  i.Free(2 * scratch);
  i.Free(2 * mw + 2 * nw + lse);  // dmix, q, kv
  i.Take(mc);                     // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  i.Take(nc);   // of the memory
  Sum(b.scattered(), nc, own_memory, &i);
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mw + mc);  // mix, dbranch
  Heap weight;
  weight.Free(mw + mc);
  if (b.scattered()) {
    i.Take(nc);
    weight.Take(nc);
    i.Free(nc);
  }
  i.Free(2 * nw);
  i.Free(own);
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  const LayerCosts costs = CostsOf(layer, b.samples, TokenSlice(), b.split);
  ExpectBytes(costs, p, x, x, Bytes(4) * own_memory);
  EXPECT_EQ(costs.backward_weight_peak, weight.peak());
}

void CheckHead(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, m = b.m(), mc = m * kHidden, own = b.own() * kHidden,
                mv = m * kWords / t;
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mv);  // logits
  if (t > 1) {
    f.Take(3 * m);  // largest, sum, the target's
    f.Free(2 * m);
  }
  f.Free(mc);

  Heap& i = p.backward;
  i.Take(mc);  // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  if (t > 1) i.Free(m);
  p.EndInput();
  i.Free(own);  // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, Bytes(0), Bytes(0));
}

TEST(TensorParallel, BytesAreThoseOfTheOrderOfAllocations) {
  for (const double dropout : {0.0, 0.1}) {
    const ModelGraph graph = EncoderDecoder(dropout);
    std::vector<TensorParallel> splits = Splits();
    splits.push_back({1, false});
    for (const TensorParallel& split : splits) {
      SCOPED_TRACE(absl::StrCat("T=", split.degree, " sequence=", split.sequence, " ", dropout));
      Branch b;
      b.split = split;
      b.dropout = dropout > 0;
      int checked = 0;
      for (const LayerSpec& layer : graph.layers) {
        SCOPED_TRACE(layer.name);
        if (!layer.input_shapes.empty()) b.tokens = layer.input_shapes[0][0];
        if (layer.kind == "gpt_attention") CheckAttention(layer, b);
        if (layer.kind == "gpt_mlp") CheckMlp(layer, b);
        if (layer.kind == "cross_attention") CheckCross(layer, b);
        if (layer.kind == "gpt_head") CheckHead(layer, b);
        checked += layer.kind != "gpt_embedding" && layer.kind != "norm";
      }
      EXPECT_EQ(checked, 6);  // two of the encoder, three of the decoder, the head
    }
  }
}

}  // namespace
}  // namespace pipelab
