// The reference's gradients against central finite differences of the reference's forwards, in
// double: what every backend is compared with is itself right.
//
// With step h the difference errs by h^2 / 6 times the third derivative plus 2^-52 / h times the
// value: about 1e-10 at h = 1e-5 for values of order 1. Allowed is 1e-7 of the largest gradient.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cases/shapes.h"
#include "kernels/reference/functions.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using Vector = std::vector<double>;
using Inputs = std::vector<Vector>;

Vector Normal(int64_t n, const std::string& name) {
  const CounterRng rng(5, name);
  Vector v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = rng.Normal(i);
  return v;
}

std::vector<int32_t> Indices(int64_t n, int64_t bound) {
  const CounterRng rng(6, "indices");
  std::vector<int32_t> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<int32_t>(rng.Below(i, bound));
  return v;
}

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The loss is weights . output; `gradients` are what the kernels say for each input, null where the
// kernel gives none. At most 40 elements an input are checked, spread over it.
void CheckGradients(const std::string& name, Inputs inputs,
                    const std::function<double(const Inputs&)>& loss,
                    const std::vector<Vector>& gradients) {
  SCOPED_TRACE(name);
  constexpr double kStep = 1e-5;
  double most = 1e-3;
  for (const Vector& g : gradients) {
    for (double v : g) most = std::max(most, std::abs(v));
  }
  for (size_t k = 0; k < gradients.size(); ++k) {
    ASSERT_EQ(gradients[k].size(), inputs[k].size());
    const size_t stride = std::max<size_t>(1, inputs[k].size() / 40);
    for (size_t i = 0; i < inputs[k].size(); i += stride) {
      const double value = inputs[k][i];
      inputs[k][i] = value + kStep;
      const double above = loss(inputs);
      inputs[k][i] = value - kStep;
      const double below = loss(inputs);
      inputs[k][i] = value;
      ASSERT_NEAR(gradients[k][i], (above - below) / (2 * kStep), 1e-7 * most)
          << "input " << k << ", element " << i;
    }
  }
}

TEST(Gradient, Linear) {
  for (const MatmulSize& s : MatmulShapes(CaseSize::kSmall)) {
    const Inputs in = {Normal(s.m * s.k, "x"), Normal(s.k * s.n, "w"), Normal(s.n, "b")};
    const Vector dy = Normal(s.m * s.n, "dy");
    Vector dx(s.m * s.k), dw(s.k * s.n), db(s.n);
    reference::LinearInputGradient(s, dy, in[1], absl::MakeSpan(dx));
    reference::LinearWeightGradient(s, in[0], dy, absl::MakeSpan(dw), absl::MakeSpan(db));
    const auto loss = [&](const Inputs& v) {
      Vector y(dy.size());
      reference::Linear(s, v[0], v[1], v[2], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("Linear ", s.m, "x", s.k, "x", s.n), in, loss, {dx, dw, db});
  }
}

TEST(Gradient, LinearTransposed) {
  for (const MatmulSize& s : MatmulShapes(CaseSize::kSmall)) {
    const Inputs in = {Normal(s.m * s.k, "x"), Normal(s.n * s.k, "w")};
    const Vector dy = Normal(s.m * s.n, "dy");
    Vector dx(s.m * s.k), dw(s.n * s.k);
    reference::LinearTransposedInputGradient(s, dy, in[1], absl::MakeSpan(dx));
    reference::LinearTransposedWeightGradient(s, in[0], dy, absl::MakeSpan(dw));
    const auto loss = [&](const Inputs& v) {
      Vector y(dy.size());
      reference::LinearTransposed(s, v[0], v[1], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("LinearTransposed ", s.m, "x", s.k, "x", s.n), in, loss, {dx, dw});
  }
}

TEST(Gradient, LayerNorm) {
  for (const RowsSize& s : NormShapes(CaseSize::kSmall)) {
    const int64_t n = s.rows * s.columns;
    const Inputs in = {Normal(n, "x"), Normal(s.columns, "gamma"), Normal(s.columns, "beta")};
    const Vector dy = Normal(n, "dy");
    Vector y(n), mean(s.rows), rstd(s.rows), dx(n), dgamma(s.columns), dbeta(s.columns);
    const auto loss = [&](const Inputs& v) {
      reference::LayerNorm(s, v[0], v[1], v[2], absl::MakeSpan(y), absl::MakeSpan(mean),
                           absl::MakeSpan(rstd));
      return Dot(y, dy);
    };
    loss(in);  // the statistics
    reference::LayerNormInputGradient(s, dy, in[0], in[1], mean, rstd, absl::MakeSpan(dx));
    reference::LayerNormWeightGradient(s, dy, in[0], mean, rstd, absl::MakeSpan(dgamma),
                                       absl::MakeSpan(dbeta));
    CheckGradients(absl::StrCat("LayerNorm ", s.rows, "x", s.columns), in, loss,
                   {dx, dgamma, dbeta});
  }
}

TEST(Gradient, Attention) {
  for (const AttentionShape& s : AttentionShapes(CaseSize::kSmall)) {
    const int64_t m = s.samples * s.tokens, width = s.heads * s.head_size;
    const int64_t queries = s.samples * s.num_queries();
    const Inputs in = {Normal(m * 3 * width, "qkv")};
    const Vector dout = Normal(queries * width, "dout");
    Vector out(queries * width), lse(queries * s.heads), dqkv(m * 3 * width);
    const auto loss = [&](const Inputs& v) {
      reference::Attention(s, v[0], absl::MakeSpan(out), absl::MakeSpan(lse));
      return Dot(out, dout);
    };
    loss(in);
    reference::AttentionGradient(s, dout, in[0], out, lse, absl::MakeSpan(dqkv));
    CheckGradients(absl::StrCat("Attention ", s.samples, "x", s.tokens, s.causal ? " causal" : "",
                                " from ", s.first_query, ", ", s.num_queries()),
                   in, loss, {dqkv});
  }
}

TEST(Gradient, GeluAndDropout) {
  for (int64_t n : ElementCounts(CaseSize::kSmall)) {
    const Inputs in = {Normal(n, "x")};
    const Vector dy = Normal(n, "dy");
    Vector dx(n), y(n);
    reference::GeluGradient(dy, in[0], absl::MakeSpan(dx));
    const auto gelu = [&](const Inputs& v) {
      reference::Gelu(v[0], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("Gelu ", n), in, gelu, {dx});
    DropoutMask mask;
    mask.rate = 0.3f;
    mask.offset = 2;
    reference::Dropout(dy, mask, absl::MakeSpan(dx));  // its own gradient
    const auto dropout = [&](const Inputs& v) {
      reference::Dropout(v[0], mask, absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("Dropout ", n), in, dropout, {dx});
  }
}

TEST(Gradient, Embedding) {
  for (const EmbeddingShape& s : EmbeddingShapes(CaseSize::kSmall)) {
    const RowsSize rows{s.samples * s.tokens, s.width};
    const std::vector<int32_t> tokens = Indices(rows.rows, s.vocabulary);
    const Inputs in = {Normal(s.vocabulary * s.width, "table"),
                       Normal(s.tokens * s.width, "positions")};
    const Vector dy = Normal(rows.rows * s.width, "dy");
    Vector dtable(in[0].size()), dpositions(in[1].size());
    reference::EmbeddingWeightGradient(rows, tokens, dy, absl::MakeSpan(dtable),
                                       absl::MakeSpan(dpositions));
    const auto loss = [&](const Inputs& v) {
      Vector y(dy.size());
      reference::Embedding(rows, tokens, v[0], v[1], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients("Embedding", in, loss, {dtable, dpositions});
  }
}

TEST(Gradient, CrossEntropy) {
  for (const RowsSize& s : LossShapes(CaseSize::kSmall)) {
    const std::vector<int32_t> targets = Indices(s.rows, s.columns);
    const Inputs in = {Normal(s.rows * s.columns, "logits")};
    Vector dlogits(in[0].size());
    reference::CrossEntropyGradient(s, in[0], targets, 0.7, absl::MakeSpan(dlogits));
    const auto loss = [&](const Inputs& v) {
      return 0.7 * reference::CrossEntropy(s, v[0], targets);
    };
    CheckGradients(absl::StrCat("CrossEntropy ", s.rows, "x", s.columns), in, loss, {dlogits});
  }
}

// Adam's own recurrence by hand: with a constant gradient g the corrected moments are g and g^2 at
// every step, so each step moves by the rate against the sign of g.
TEST(Reference, AdamWithAConstantGradientMovesByTheRate) {
  const Vector g = {0.5, -3};
  Vector w = {1, 1}, m(2), v(2);
  AdamOptions options;
  options.learning_rate = 0.125f;
  for (int64_t step = 1; step <= 3; ++step) {
    options.step = step;
    reference::Adam(options, g, absl::MakeSpan(w), absl::MakeSpan(m), absl::MakeSpan(v));
    EXPECT_NEAR(w[0], 1 - 0.125 * step, 1e-6);
    EXPECT_NEAR(w[1], 1 + 0.125 * step, 1e-6);
  }
  options.weight_decay = 0.5f;
  options.step = 4;
  const double before = w[0];
  reference::Adam(options, g, absl::MakeSpan(w), absl::MakeSpan(m), absl::MakeSpan(v));
  EXPECT_NEAR(w[0], before - 0.125 - 0.125 * 0.5 * before, 1e-6) << "decay is outside the moments";
}

}  // namespace
}  // namespace pipelab
