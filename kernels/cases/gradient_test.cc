// The reference's gradients against central finite differences of the reference's forwards, in
// double: what every backend is compared with is itself right.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/attention_call.h"
#include "kernels/cases/gradient_check.h"
#include "kernels/cases/shapes.h"
#include "kernels/reference/functions.h"

namespace pipelab {
namespace {

TEST(Gradient, Linear) {
  for (const MatmulSize& s : MatmulShapes(CaseSize::kSmall)) {
    const Inputs in = {NormalVector(s.m * s.k, "x"), NormalVector(s.k * s.n, "w"),
                       NormalVector(s.n, "b")};
    const Vector dy = NormalVector(s.m * s.n, "dy");
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
    const Inputs in = {NormalVector(s.m * s.k, "x"), NormalVector(s.n * s.k, "w")};
    const Vector dy = NormalVector(s.m * s.n, "dy");
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
    const Inputs in = {NormalVector(n, "x"), NormalVector(s.columns, "gamma"),
                       NormalVector(s.columns, "beta")};
    const Vector dy = NormalVector(n, "dy");
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

TEST(Gradient, RmsNorm) {
  for (const RowsSize& s : NormShapes(CaseSize::kSmall)) {
    const int64_t n = s.rows * s.columns;
    const Inputs in = {NormalVector(n, "x"), NormalVector(s.columns, "gamma")};
    const Vector dy = NormalVector(n, "dy");
    Vector y(n), rstd(s.rows), dx(n), dgamma(s.columns);
    const auto loss = [&](const Inputs& v) {
      reference::LayerNorm(s, v[0], v[1], {}, absl::MakeSpan(y), {}, absl::MakeSpan(rstd));
      return Dot(y, dy);
    };
    loss(in);  // the deviations
    reference::LayerNormInputGradient(s, dy, in[0], in[1], {}, rstd, absl::MakeSpan(dx));
    reference::LayerNormWeightGradient(s, dy, in[0], {}, rstd, absl::MakeSpan(dgamma), {});
    CheckGradients(absl::StrCat("RmsNorm ", s.rows, "x", s.columns), in, loss, {dx, dgamma});
  }
}

TEST(Gradient, Gate) {
  for (const RowsSize& s : NormShapes(CaseSize::kSmall)) {
    for (const GateKind kind : {GateKind::kSwish, GateKind::kGelu}) {
      const int64_t n = s.rows * s.columns;
      const Inputs in = {NormalVector(2 * n, "gu")};
      const Vector dy = NormalVector(n, "dy");
      Vector y(n), dgu(2 * n);
      const auto loss = [&](const Inputs& v) {
        reference::Gate(kind, s, v[0], absl::MakeSpan(y));
        return Dot(y, dy);
      };
      reference::GateGradient(kind, s, dy, in[0], absl::MakeSpan(dgu));
      CheckGradients(absl::StrCat("Gate ", s.rows, "x", s.columns), in, loss, {dgu});
    }
  }
}

// A routing by random logits, which are far enough from ties.
struct Routed {
  Vector logits, weights;
  std::vector<int32_t> experts, places, begins;

  explicit Routed(const RouterShape& s)
      : logits(NormalVector(s.rows() * s.experts, "logits")),
        weights(s.rows() * s.choices()),
        experts(weights.size()),
        places(weights.size()),
        begins(s.groups() + 1) {
    Again(s, logits);
  }
  void Again(const RouterShape& s, const Vector& of) {
    reference::Route(s, of, absl::MakeSpan(weights),
                     {absl::MakeSpan(experts), absl::MakeSpan(places), absl::MakeSpan(begins)});
  }
};

TEST(Gradient, Route) {
  for (const ExpertShape& e : ExpertShapes(CaseSize::kSmall)) {
    const RouterShape& s = e.router;
    Routed routed(s);
    const std::vector<int32_t> experts = routed.experts;
    const Vector dweights = NormalVector(routed.weights.size(), "dweights");
    for (const double balance : {0.0, 0.7}) {
      Vector dlogits(routed.logits.size());
      reference::RouteGradient(s, dweights, routed.logits, experts, balance,
                               absl::MakeSpan(dlogits));
      const auto loss = [&](const Inputs& v) {
        routed.Again(s, v[0]);
        EXPECT_EQ(routed.experts, experts) << "a tie";
        return Dot(routed.weights, dweights) + balance * reference::BalancingLoss(s, v[0], experts);
      };
      CheckGradients(absl::StrCat("Route ", s.chosen, " of ", s.experts), {routed.logits}, loss,
                     {dlogits});
    }
  }
}

TEST(Gradient, WeighAndExpertProduct) {
  for (const ExpertShape& e : ExpertShapes(CaseSize::kSmall)) {
    const RouterShape& s = e.router;
    const Routed routed(s);
    const int64_t rows = s.rows() * s.choices(), c = e.width, f = e.inner;
    const MatmulSize size{rows, c, f};
    const Inputs in = {NormalVector(rows * c, "x"), NormalVector(s.groups() * c * f, "w"),
                       routed.weights};
    // Rows that nobody has stay 0.
    const auto forward = [&](const Inputs& v, bool weigh) {
      Vector y(rows * f);
      reference::ExpertProduct(routed.begins, size, v[0], v[1], absl::MakeSpan(y));
      if (weigh) reference::Weigh(routed.places, f, v[2], absl::MakeSpan(y));
      return y;
    };
    const Vector dy = NormalVector(rows * f, "dy");
    Vector dh = dy, dx(rows * c), dw(in[1].size()), dweights(in[2].size());
    reference::WeighGradient(routed.places, f, in[2], forward(in, false), absl::MakeSpan(dh),
                             absl::MakeSpan(dweights));
    reference::ExpertProductInputGradient(routed.begins, size, dh, in[1], absl::MakeSpan(dx));
    reference::ExpertProductWeightGradient(routed.begins, size, in[0], dh, absl::MakeSpan(dw));
    CheckGradients(absl::StrCat("ExpertProduct ", s.chosen, " of ", s.experts), in,
                   [&](const Inputs& v) { return Dot(forward(v, true), dy); }, {dx, dw, dweights});
  }
}

// Each is the other's gradient: x' to y is y' to x. Without drops all choices of a token sum to
// K times the token.
TEST(Gradient, GatherAndSumOfChoices) {
  for (const ExpertShape& e : ExpertShapes(CaseSize::kSmall)) {
    const RouterShape& s = e.router;
    const Routed routed(s);
    const int64_t k = s.choices(), c = e.width;
    const Vector x = NormalVector(s.rows() * c, "x"), dall = NormalVector(s.rows() * k * c, "dy");
    Vector all(dall.size()), dx(x.size()), sum(x.size());
    reference::Gather(routed.places, k, c, x, absl::MakeSpan(all));
    reference::SumOfChoices(routed.places, k, c, dall, absl::MakeSpan(dx));
    EXPECT_NEAR(Dot(all, dall), Dot(x, dx), 1e-12 * static_cast<double>(dall.size()));
    reference::SumOfChoices(routed.places, k, c, all, absl::MakeSpan(sum));
    for (size_t i = 0; i < x.size() && s.capacity == 0; ++i) {
      EXPECT_NEAR(sum[i], static_cast<double>(k) * x[i], 1e-12);
    }
  }
}

// The first of equal logits is taken; a full expert takes the first tokens of each sample; shared
// experts take all, behind the others.
TEST(Route, TiesCapacityAndSharedExperts) {
  const RouterShape s{2, 2, 3, 1, 1, RouterScores::kSoftmax, false, 1, /*capacity=*/1};
  Routed routed(s);
  routed.Again(s, {0, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 3});
  EXPECT_EQ(routed.experts, std::vector<int32_t>({0, 3, 0, 3, 1, 3, 2, 3}));
  EXPECT_EQ(routed.places, std::vector<int32_t>({0, 3, kDropped, 4, 1, 5, 2, 6}));
  EXPECT_EQ(routed.begins, std::vector<int32_t>({0, 1, 2, 3, 7}));
  EXPECT_DOUBLE_EQ(routed.weights[0], 1.0 / 3);
  EXPECT_EQ(routed.weights[1], 1);
}

// Three nodes of two experts: the largest logit of all lies on a node whose two do not add up.
TEST(Gradient, RouteFromTheBestNodes) {
  RouterShape s{1, 1, 6, 2, 0, RouterScores::kSigmoid};
  Routed routed(s);
  const Vector logits = {3, -9, 1, 2, 0, 1};  // node by node: 0.95 + 0, 0.73 + 0.88, 0.5 + 0.73
  routed.Again(s, logits);
  EXPECT_EQ(routed.experts, std::vector<int32_t>({0, 3}));
  s.nodes = 3;
  s.most_nodes = 1;
  routed.Again(s, logits);
  EXPECT_EQ(routed.experts, std::vector<int32_t>({3, 2}));
  s.most_nodes = 2;
  s.chosen = 2;
  routed.Again(s, logits);
  EXPECT_EQ(routed.experts, std::vector<int32_t>({3, 2}));
  s.most_nodes = 3;
  routed.Again(s, logits);
  EXPECT_EQ(routed.experts, std::vector<int32_t>({0, 3}));
}

// A turn back is the gradient, and undoes a turn.
TEST(Gradient, Rotate) {
  for (const RotaryShape& s : {RotaryShape{2, 3, 0, 2, 4}, RotaryShape{1, 4, 1000, 3, 2, 500000},
                               RotaryShape{2, 3, 1, 2, 4, 10000, 5}}) {
    const int64_t columns = s.heads * s.head_stride() + 3, n = s.samples * s.tokens * columns;
    const Inputs in = {NormalVector(n, "x")};
    const Vector dy = NormalVector(n, "dy");
    const auto loss = [&](const Inputs& v) {
      Vector y = v[0];
      reference::Rotate(s, /*back=*/false, columns, absl::MakeSpan(y));
      return Dot(y, dy);
    };
    Vector dx = dy;
    reference::Rotate(s, /*back=*/true, columns, absl::MakeSpan(dx));
    CheckGradients(absl::StrCat("Rotate ", s.heads, "x", s.head_size), in, loss, {dx});
    reference::Rotate(s, /*back=*/false, columns, absl::MakeSpan(dx));
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(dx[i], dy[i], 1e-12);
  }
}

TEST(Gradient, ShareHead) {
  constexpr int64_t kRows = 3, kSize = 2, kHeads = 4, kColumns = 5;
  const Inputs in = {NormalVector(kRows * kSize, "x")};
  const Vector dy = NormalVector(kRows * kHeads * kColumns, "dy");
  const auto loss = [&](const Inputs& v) {
    Vector y(dy.size());
    reference::ShareHead(kRows, kSize, kHeads, kColumns, v[0], absl::MakeSpan(y));
    return Dot(y, dy);
  };
  Vector dx(in[0].size());
  reference::ShareHeadGradient(kRows, kSize, kHeads, kColumns, dy, absl::MakeSpan(dx));
  CheckGradients("ShareHead", in, loss, {dx});
}

TEST(Gradient, Attention) {
  for (const AttentionShape& s : AttentionShapes(CaseSize::kSmall)) {
    const AttentionCall call = CallOf(s);
    const int64_t m = s.samples * s.tokens, width = s.heads * s.head_size;
    const int64_t queries = s.samples * s.num_queries();
    const Inputs in = {NormalVector(m * (width + 2 * s.kv_width()), "qkv")};
    const Vector dout = NormalVector(queries * width, "dout");
    Vector out(queries * width), lse(queries * s.heads), dqkv(in[0].size());
    const auto loss = [&](const Inputs& v) {
      reference::Attention(call, v[0], v[0], absl::MakeSpan(out), absl::MakeSpan(lse));
      return Dot(out, dout);
    };
    loss(in);
    reference::AttentionGradient(call, dout, in[0], in[0], out, lse, absl::MakeSpan(dqkv),
                                 absl::MakeSpan(dqkv));
    CheckGradients(absl::StrCat("Attention ", s.samples, "x", s.tokens, s.causal ? " causal" : "",
                                " from ", s.first_query, ", ", s.num_queries()),
                   in, loss, {dqkv});
  }
}

TEST(Gradient, CrossAttention) {
  for (const CrossAttentionShape& s : CrossAttentionShapes(CaseSize::kSmall)) {
    const AttentionCall call = CallOf(s);
    const int64_t queries = s.samples * s.queries, width = s.out_width();
    const Inputs in = {NormalVector(queries * s.row(), "q"),
                       NormalVector(s.samples * s.keys * s.kv_row(), "kv")};
    const Vector dout = NormalVector(queries * width, "dout");
    Vector out(queries * width), lse(queries * s.heads), dq(in[0].size()), dkv(in[1].size());
    const auto loss = [&](const Inputs& v) {
      reference::Attention(call, v[0], v[1], absl::MakeSpan(out), absl::MakeSpan(lse));
      return Dot(out, dout);
    };
    loss(in);
    reference::AttentionGradient(call, dout, in[0], in[1], out, lse, absl::MakeSpan(dq),
                                 absl::MakeSpan(dkv));
    CheckGradients(absl::StrCat("CrossAttention ", s.samples, "x", s.queries, "x", s.keys,
                                s.causal ? absl::StrCat(" from ", s.first_query) : ""),
                   in, loss, {dq, dkv});
  }
}

// Pieces of the keys one by one: what they give merged is the whole, and their gradients with the
// whole's output and sums add up to its own.
TEST(Gradient, AttentionInPieces) {
  constexpr int64_t kHeads = 2, kQueries = 5, kSize = 3, kPiece = 4, kPieces = 3;
  constexpr int64_t kWidth = kHeads * kSize;
  for (const int64_t window : {0, 6}) {
    CrossAttentionShape whole{1, kQueries, kPiece * kPieces, kHeads, kSize};
    whole.causal = true;
    whole.first_query = 2 * kPiece;
    whole.queries = kPiece;
    whole.window = window;
    const Vector q = NormalVector(kPiece * kWidth, "q");
    const Vector kv = NormalVector(whole.keys * 2 * kWidth, "kv");
    const Vector dout = NormalVector(kPiece * kWidth, "dout");
    Vector out(q.size()), lse(kPiece * kHeads), dq(q.size()), dkv(kv.size());
    reference::Attention(CallOf(whole), q, kv, absl::MakeSpan(out), absl::MakeSpan(lse));
    reference::AttentionGradient(CallOf(whole), dout, q, kv, out, lse, absl::MakeSpan(dq),
                                 absl::MakeSpan(dkv));
    Vector merged(q.size()), sums(lse.size()), sum_dq(q.size()), sum_dkv(kv.size());
    for (int64_t piece = kPieces - 1; piece >= 0; --piece) {
      CrossAttentionShape part = whole;
      part.keys = kPiece;
      part.first_query = (2 - piece) * kPiece;
      // Those that see none of the keys are not in the call.
      if (window > 0) part.queries = std::min(kPiece, kPiece + window - 1 - part.first_query);
      if (part.queries <= 0) continue;
      part.adds_queries = true;
      const int64_t n = part.queries, at = piece * kPiece * 2 * kWidth;
      const absl::Span<const double> keys(&kv[at], kPiece * 2 * kWidth);
      Vector out_part(n * kWidth), lse_part(n * kHeads);
      reference::Attention(CallOf(part), q, keys, absl::MakeSpan(out_part),
                           absl::MakeSpan(lse_part));
      if (piece == kPieces - 1) {
        merged = out_part;
        sums = lse_part;
      } else {
        reference::Merge(n, kPiece, kHeads, out_part, lse_part, absl::MakeSpan(merged),
                         absl::MakeSpan(sums));
      }
      for (int64_t i = 0; i < n * kHeads; ++i) lse_part[i] = lse[i / n * kPiece + i % n];
      reference::AttentionGradient(CallOf(part), dout, q, keys, out, lse_part,
                                   absl::MakeSpan(sum_dq),
                                   absl::MakeSpan(sum_dkv).subspan(at, keys.size()));
    }
    const auto expect_near = [&](const Vector& is, const Vector& should) {
      for (size_t i = 0; i < should.size(); ++i) EXPECT_NEAR(is[i], should[i], 1e-12) << window;
    };
    expect_near(merged, out);
    expect_near(sums, lse);
    expect_near(sum_dq, dq);
    expect_near(sum_dkv, dkv);
  }
}

TEST(Gradient, GeluAndDropout) {
  for (int64_t n : ElementCounts(CaseSize::kSmall)) {
    const Inputs in = {NormalVector(n, "x")};
    const Vector dy = NormalVector(n, "dy");
    Vector dx(n), y(n);
    for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
      reference::GeluGradient(form, dy, in[0], absl::MakeSpan(dx));
      const auto gelu = [&](const Inputs& v) {
        reference::Gelu(form, v[0], absl::MakeSpan(y));
        return Dot(y, dy);
      };
      CheckGradients(absl::StrCat("Gelu ", static_cast<int>(form), " ", n), in, gelu, {dx});
    }
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
    const std::vector<int32_t> tokens = RandomIndices(rows.rows, s.vocabulary);
    const Inputs in = {NormalVector(s.vocabulary * s.width, "table"),
                       NormalVector(s.tokens * s.width, "positions")};
    const Vector dy = NormalVector(rows.rows * s.width, "dy");
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
    const std::vector<int32_t> targets = RandomIndices(s.rows, s.columns);
    const Inputs in = {NormalVector(s.rows * s.columns, "logits")};
    Vector dlogits(in[0].size());
    reference::CrossEntropyGradient(s, in[0], targets, 0.7, absl::MakeSpan(dlogits));
    const auto loss = [&](const Inputs& v) {
      return 0.7 * reference::CrossEntropy(s, v[0], targets);
    };
    CheckGradients(absl::StrCat("CrossEntropy ", s.rows, "x", s.columns), in, loss, {dlogits});
  }
}

// Two devices with some of the columns each: together they have the loss and the gradient of one.
TEST(Gradient, CrossEntropyInParts) {
  for (const RowsSize& s : LossShapes(CaseSize::kSmall)) {
    const RowsSize whole{s.rows, 2 * s.columns};
    std::vector<int32_t> targets = RandomIndices(s.rows, whole.columns);
    targets[0] = kNoTarget;
    const Vector logits = NormalVector(whole.rows * whole.columns, "logits");
    std::vector<Vector> parts(2);
    for (size_t i = 0; i < logits.size(); ++i) {
      parts[i / s.columns % 2].push_back(logits[i]);
    }
    Vector most(s.rows, -1e9), sums(s.rows), target_logits(s.rows);
    for (const Vector& part : parts) {
      Vector own(s.rows);
      reference::LargestLogits(s, part, absl::MakeSpan(own));
      for (int64_t i = 0; i < s.rows; ++i) most[i] = std::max(most[i], own[i]);
    }
    for (int p = 0; p < 2; ++p) {
      Vector own(s.rows), own_target(s.rows);
      reference::SoftmaxSums(s, parts[p], targets, p * s.columns, most, absl::MakeSpan(own),
                             absl::MakeSpan(own_target));
      for (int64_t i = 0; i < s.rows; ++i) {
        sums[i] += own[i];
        target_logits[i] += own_target[i];
      }
    }
    const double loss =
        reference::CrossEntropyOfSums(targets, sums, target_logits, absl::MakeSpan(most));
    const double expected = reference::CrossEntropy(whole, logits, targets);
    EXPECT_NEAR(loss, expected, 1e-12 * (1 + std::abs(expected)) * s.rows);
    Vector gradient(logits.size());
    reference::CrossEntropyGradient(whole, logits, targets, 0.7, absl::MakeSpan(gradient));
    for (int p = 0; p < 2; ++p) {
      Vector own(parts[p].size());
      reference::CrossEntropyPartGradient(s, parts[p], targets, p * s.columns, most, 0.7,
                                          absl::MakeSpan(own));
      for (size_t i = 0; i < own.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / s.columns, column = i % s.columns;
        EXPECT_NEAR(own[i], gradient[row * whole.columns + p * s.columns + column], 1e-12);
      }
    }
  }
}

TEST(Gradient, SquaredErrorAndBinaryCrossEntropy) {
  for (int64_t n : ElementCounts(CaseSize::kSmall)) {
    const Inputs in = {NormalVector(n, "y")};
    Vector targets = NormalVector(n, "targets"), dy(n);
    for (double& t : targets) t = 1 / (1 + std::exp(-t));
    reference::SquaredErrorGradient(in[0], targets, 0.7, absl::MakeSpan(dy));
    CheckGradients(absl::StrCat("SquaredError ", n), in,
                   [&](const Inputs& v) { return 0.7 * reference::SquaredError(v[0], targets); },
                   {dy});
    reference::BinaryCrossEntropyGradient(in[0], targets, 0.7, absl::MakeSpan(dy));
    CheckGradients(
        absl::StrCat("BinaryCrossEntropy ", n), in,
        [&](const Inputs& v) { return 0.7 * reference::BinaryCrossEntropy(v[0], targets); }, {dy});
  }
}

}  // namespace
}  // namespace pipelab
