// What the interface promises beyond values: accumulation, aliasing, masks, causality, NaNs,
// workspace, refused shapes. Every test runs on every backend.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cases/backend_fixture.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/simd.h"

namespace pipelab {
namespace {

TEST_P(BackendTest, WeightGradientsAreAddedInTheOrderOfTheCalls) {
  const Tensor x = Random({6, 4}, "x"), dy = Random({6, 5}, "dy");
  Tensor dw = backend_->Allocate({4, 5}), db = backend_->Allocate({5});
  backend_->Fill(dw, 0);
  backend_->Fill(db, 0);
  backend_->LinearWeightGradient(x, dy, dw, db);
  const Tensor once = Clone(dw), bias_once = Clone(db);
  backend_->LinearWeightGradient(x, dy, dw, db);
  for (int64_t i = 0; i < dw.size(); ++i) {
    EXPECT_NEAR(dw.f32()[i], 2 * once.f32()[i], 1e-5);
  }
  for (int64_t i = 0; i < db.size(); ++i) EXPECT_NEAR(db.f32()[i], 2 * bias_once.f32()[i], 1e-5);
  // By hand: one row, so that dw = x^T dy and db = dy.
  backend_->Fill(dw, 1);
  backend_->LinearWeightGradient(x.Rows(0, 1), dy.Rows(0, 1), dw, Tensor());
  EXPECT_FLOAT_EQ(dw.f32()[7], 1 + x.f32()[1] * dy.f32()[2]);
}

TEST_P(BackendTest, OutputsMayBeInputsWhereTheHeaderSaysSo) {
  const Tensor a = Random({300}, "a"), b = Random({300}, "b");
  DropoutMask mask;
  mask.rate = 0.3f;
  mask.offset = 7;
  const auto check = [&](const char* what, const Tensor& in_place,
                         const std::function<void(const Tensor& out)>& run) {
    const Tensor apart = backend_->Allocate({300});
    run(apart);
    run(in_place);
    EXPECT_TRUE(SameBits(apart, in_place)) << what;
  };
  const Tensor a1 = Clone(a);
  check("Add y = a", a1, [&](const Tensor& y) { backend_->Add(&y == &a1 ? a1 : a, b, y); });
  const Tensor b1 = Clone(b);
  check("AddDropout y = b", b1,
        [&](const Tensor& y) { backend_->AddDropout(a, &y == &b1 ? b1 : b, mask, y); });
  const Tensor a2 = Clone(a);
  check("Dropout y = x", a2,
        [&](const Tensor& y) { backend_->Dropout(&y == &a2 ? a2 : a, mask, y); });
  const Tensor a3 = Clone(a);
  check("GeluGradient dx = dy", a3,
        [&](const Tensor& y) { backend_->GeluGradient(&y == &a3 ? a3 : a, b, y); });
  const Tensor logits = a.Reshape({10, 30}), a4 = Clone(logits);
  const Tensor targets = Int({0, 1, 2, 3, 4, 5, 6, 7, 8, 29});
  const Tensor apart = backend_->Allocate({10, 30});
  backend_->loss().CrossEntropyGradient(logits, targets, 0.5f, apart);
  backend_->loss().CrossEntropyGradient(a4, targets, 0.5f, a4);
  EXPECT_TRUE(SameBits(apart, a4));
}

TEST_P(BackendTest, DropoutKeepsExactlyWhatTheRandomStreamSays) {
  const Tensor ones = backend_->Allocate({1000}), y = backend_->Allocate({1000});
  backend_->Fill(ones, 1);
  for (float rate : {0.1f, 0.5f, 0.999f}) {
    for (uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{6}, (uint64_t{1} << 34) - 301}) {
      DropoutMask mask;
      mask.rate = rate;
      mask.rng = CounterRng(77, "drop");
      mask.offset = offset;
      backend_->Dropout(ones, mask, y);
      for (int64_t i = 0; i < 1000; ++i) {
        const bool kept = mask.rng.Uniform(offset + i) >= rate;
        ASSERT_EQ(y.f32()[i] != 0, kept) << rate << " " << offset << " " << i;
      }
    }
  }
}

TEST_P(BackendTest, TokensDoNotSeeTheFutureNorOtherSequences) {
  const AttentionShape shape{2, 70, 2, 8, true};
  const Tensor qkv = Random({140, 48}, "qkv"), changed = Clone(qkv);
  const Tensor out = backend_->Allocate({140, 16}), out2 = backend_->Allocate({140, 16});
  const Tensor lse = backend_->Allocate({2, 2, 70});
  // Other values from token 66 of the first sequence on: rows 0 to 65 and the second sequence stay.
  for (int64_t i = 66 * 48; i < 70 * 48; ++i) changed.f32()[i] += 3;
  backend_->attention().Forward(shape, qkv, out, lse);
  backend_->attention().Forward(shape, changed, out2, lse);
  EXPECT_TRUE(SameBits(out.Rows(0, 66), out2.Rows(0, 66)));
  EXPECT_TRUE(SameBits(out.Rows(70, 140), out2.Rows(70, 140)));
  EXPECT_FALSE(SameBits(out.Rows(66, 70), out2.Rows(66, 70)));
}

// Slices of the queries, forwards from the first to the last and gradients from the last to the
// first, against one call: the same bits where slices begin at multiples of a block's rows, and
// within some hundred roundings of sums of 200 terms elsewhere.
TEST_P(BackendTest, SlicesOfTheQueriesAreTheWhole) {
  constexpr int64_t kTokens = 200, kWidth = 16;
  const auto check = [&](const AttentionShape& whole) {
    const Tensor qkv = Random({2 * kTokens, 3 * kWidth}, "qkv"),
                 dout = Random({2 * kTokens, kWidth}, "dout");
    const Tensor out = Random({2 * kTokens, kWidth}, "o"),
                 lse = backend_->Allocate({2, 2, kTokens});
    const Tensor dqkv = Random({2 * kTokens, 3 * kWidth}, "d"), sliced_dqkv = Clone(dqkv);
    backend_->attention().Forward(whole, qkv, out, lse);
    backend_->attention().Gradient(whole, dout, qkv, out, lse, dqkv);
    for (const std::vector<int64_t>& begins : std::vector<std::vector<int64_t>>{
             {0, 64, 128}, {0, 128, 192}, {0}, {0, 1, 50, 130, 199}, {0, 100}}) {
      const bool blocks = begins.back() % kAttentionBlockRows == 0;
      for (size_t i = begins.size(); i-- > 0;) {
        AttentionShape shape = whole;
        shape.first_query = begins[i];
        shape.queries = (i + 1 < begins.size() ? begins[i + 1] : kTokens) - begins[i];
        const int64_t n = shape.queries;
        // K and v of later tokens are not there yet when a slice's forward runs.
        const Tensor known = Clone(qkv), slice_dout = backend_->Allocate({2 * n, kWidth});
        for (int64_t s = 0; s < 2; ++s) {
          backend_->Fill(known.Rows(s * kTokens + shape.end_query(), (s + 1) * kTokens),
                         std::numeric_limits<float>::quiet_NaN());
          const int64_t row = s * kTokens + begins[i];
          backend_->Copy(dout.Rows(row, row + n), slice_dout.Rows(s * n, (s + 1) * n));
        }
        const Tensor slice_out = backend_->Allocate({2 * n, kWidth});
        const Tensor slice_lse = backend_->Allocate({2, 2, n});
        backend_->attention().Forward(shape, known, slice_out, slice_lse);
        for (int64_t s = 0; s < 2; ++s) {
          const Tensor want = out.Rows(s * kTokens + begins[i], s * kTokens + begins[i] + n);
          const Tensor got = slice_out.Rows(s * n, (s + 1) * n);
          if (blocks) {
            EXPECT_TRUE(SameBits(got, want)) << "slice " << i;
          }
          for (int64_t j = 0; j < got.size(); ++j) {
            ASSERT_NEAR(got.f32()[j], want.f32()[j], 1e-5) << "slice " << i;
          }
        }
        backend_->attention().Gradient(shape, slice_dout, known, slice_out, slice_lse, sliced_dqkv);
      }
      if (blocks && backend_->name() != "reference") {  // which rounds after each call only
        EXPECT_TRUE(SameBits(sliced_dqkv, dqkv));
      }
      for (int64_t j = 0; j < dqkv.size(); ++j) {
        ASSERT_NEAR(sliced_dqkv.f32()[j], dqkv.f32()[j], 1e-4);
      }
    }
  };
  for (const auto& [window, key_tile] : {std::make_pair(0, 0), {50, 0}, {0, 33}, {90, 20}}) {
    SCOPED_TRACE(testing::Message() << "window " << window << ", tiles of " << key_tile);
    AttentionShape whole{2, kTokens, 2, 8, true};
    whole.window = window;
    whole.key_tile = key_tile;
    check(whole);
  }
}

// Self attention without a mask is cross attention of the sequence with itself, and padding is as
// good as absent.
TEST_P(BackendTest, CrossAttentionIsSelfAttentionOnSeparateTensors) {
  const Tensor qkv = Random({2 * 70, 48}, "qkv"), q = backend_->Allocate({140, 16});
  const Tensor kv = backend_->Allocate({140, 32}), dout = Random({140, 16}, "dout");
  backend_->CopyColumns(qkv, 0, q, 0, 16);
  backend_->CopyColumns(qkv, 16, kv, 0, 32);
  const Tensor out = backend_->Allocate({140, 16}), lse = backend_->Allocate({2, 2, 70});
  const Tensor out2 = backend_->Allocate({140, 16}), lse2 = backend_->Allocate({2, 2, 70});
  const Tensor dqkv = backend_->Allocate({140, 48}), dq = backend_->Allocate({140, 16});
  const Tensor dkv = backend_->Allocate({140, 32}), both = backend_->Allocate({140, 48});
  const int32_t lengths[] = {70, 33};
  AttentionShape self{2, 70, 2, 8, false};
  CrossAttentionShape cross{2, 70, 70, 2, 8};
  for (bool padded : {false, true}) {
    if (padded) self.key_lengths = cross.key_lengths = lengths;
    backend_->attention().Forward(self, qkv, out, lse);
    backend_->attention().CrossForward(cross, q, kv, out2, lse2);
    EXPECT_TRUE(SameBits(out, out2));
    EXPECT_TRUE(SameBits(lse, lse2));
    backend_->attention().Gradient(self, dout, qkv, out, lse, dqkv);
    backend_->attention().CrossGradient(cross, dout, q, kv, out, lse, dq, dkv);
    backend_->CopyColumns(dq, 0, both, 0, 16);
    backend_->CopyColumns(dkv, 0, both, 16, 32);
    EXPECT_TRUE(SameBits(dqkv, both));
  }
  for (float v : dkv.Rows(70 + 33, 140).f32()) EXPECT_EQ(v, 0) << "padding has a gradient";
  // The second sample alone, without the padding.
  const Tensor short_out = backend_->Allocate({70, 16}), short_lse = backend_->Allocate({1, 2, 70});
  backend_->attention().CrossForward({1, 70, 33, 2, 8}, q.Rows(70, 140), kv.Rows(70, 103),
                                     short_out, short_lse);
  EXPECT_TRUE(SameBits(short_out, out.Rows(70, 140)));
}

TEST_P(BackendTest, ExtremeScoresStayFinite) {
  const AttentionShape shape{1, 3, 1, 2, true};
  const Tensor qkv = backend_->Allocate({3, 6}), out = backend_->Allocate({3, 2});
  const Tensor lse = backend_->Allocate({1, 1, 3}), dqkv = backend_->Allocate({3, 6});
  for (int64_t i = 0; i < qkv.size(); ++i) qkv.f32()[i] = i % 2 == 0 ? 60.0f : -45.0f;
  backend_->attention().Forward(shape, qkv, out, lse);
  backend_->attention().Gradient(shape, out, qkv, out, lse, dqkv);
  for (float v : dqkv.f32()) EXPECT_TRUE(std::isfinite(v));
  const Tensor logits = backend_->Allocate({1, 2});
  logits.f32()[0] = 1000;
  logits.f32()[1] = -1000;
  EXPECT_NEAR(backend_->loss().CrossEntropy(logits, Int({1})), 2000, 1e-3);
  EXPECT_EQ(backend_->loss().CrossEntropy(logits, Int({0})), 0);
  // A coin whose logit is 1000 or -1000: no infinities, and a sigmoid of exactly 1 or 0.
  const Tensor ones = backend_->Allocate({1, 2}), d = backend_->Allocate({1, 2});
  backend_->Fill(ones, 1);
  EXPECT_NEAR(backend_->loss().BinaryCrossEntropy(logits, ones), 1000, 1e-3);
  backend_->loss().BinaryCrossEntropyGradient(logits, ones, 1, d);
  EXPECT_EQ(d.f32()[0], 0);
  EXPECT_EQ(d.f32()[1], -1);
}

TEST_P(BackendTest, RowsWithoutTargetsHaveNoLoss) {
  const Tensor logits = Random({3, 5}, "logits"), d = backend_->Allocate({3, 5});
  const Tensor two = backend_->Allocate({2, 5}), d2 = backend_->Allocate({2, 5});
  backend_->Copy(logits.Rows(0, 1), two.Rows(0, 1));
  backend_->Copy(logits.Rows(2, 3), two.Rows(1, 2));
  EXPECT_EQ(backend_->loss().CrossEntropy(logits, Int({4, kNoTarget, 1})),
            backend_->loss().CrossEntropy(two, Int({4, 1})));
  backend_->loss().CrossEntropyGradient(logits, Int({4, kNoTarget, 1}), 0.5f, d);
  backend_->loss().CrossEntropyGradient(two, Int({4, 1}), 0.5f, d2);
  EXPECT_TRUE(SameBits(d.Rows(0, 1), d2.Rows(0, 1)));
  EXPECT_TRUE(SameBits(d.Rows(2, 3), d2.Rows(1, 2)));
  for (float v : d.Rows(1, 2).f32()) EXPECT_EQ(v, 0);
}

TEST_P(BackendTest, NansAreNotHidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Random({40}, "x"), y = backend_->Allocate({40});
  for (int64_t at : {0, 17, 39}) {
    const Tensor bad = Clone(x);
    bad.f32()[at] = nan;
    backend_->Gelu(bad, y);
    EXPECT_TRUE(std::isnan(y.f32()[at])) << at;
    EXPECT_TRUE(std::isnan(backend_->loss().CrossEntropy(bad.Reshape({1, 40}), Int({3})))) << at;
    EXPECT_TRUE(std::isnan(backend_->loss().BinaryCrossEntropy(bad, x))) << at;
    EXPECT_TRUE(std::isnan(backend_->loss().SquaredError(x, bad))) << at;
    EXPECT_TRUE(std::isnan(backend_->optimizer().SumOfSquares(bad))) << at;
  }
}

TEST_P(BackendTest, AttentionWorkspaceIsWhatTheHeaderSays) {
  for (int64_t tokens : {5, 64, 100}) {
    const AttentionShape shape{1, tokens, 1, 4, true};
    const Tensor qkv = Random({tokens, 12}, "qkv"), out = backend_->Allocate({tokens, 4});
    const Tensor lse = backend_->Allocate({1, 1, tokens}), dqkv = backend_->Allocate({tokens, 12});
    const int64_t block = 4 * std::min<int64_t>(64, tokens) * tokens;
    arena_.ResetPeaks();
    backend_->attention().Forward(shape, qkv, out, lse);
    EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(block));
    backend_->attention().Gradient(shape, out, qkv, out, lse, dqkv);
    EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(2 * block));
    EXPECT_EQ(arena_.current(MemoryKind::kWorkspace), Bytes(0));
  }
  // With a window the workspace has the keys that a block's rows see.
  AttentionShape window{1, 200, 1, 4, true};
  window.window = 20;
  const Tensor qkv = Random({200, 12}, "qkv"), out = backend_->Allocate({200, 4});
  arena_.ResetPeaks();
  backend_->attention().Forward(window, qkv, out, backend_->Allocate({1, 1, 200}));
  EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(4 * 64 * (20 + 63)));
  // With tiles it has their keys, however long the sequence.
  AttentionShape tiles{1, 200, 1, 4, true};
  tiles.key_tile = 30;
  arena_.ResetPeaks();
  backend_->attention().Gradient(tiles, out, qkv, out, backend_->Allocate({1, 1, 200}),
                                 backend_->Allocate({200, 12}));
  EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(2 * 4 * 64 * 30));
  // A slice of the queries: its rows, times the keys that are there.
  for (const auto& [first, queries] : {std::make_pair(0, 30), {70, 30}, {20, 80}}) {
    AttentionShape shape{1, 100, 1, 4, true};
    shape.first_query = first;
    shape.queries = queries;
    const Tensor qkv = Random({100, 12}, "qkv"), out = backend_->Allocate({queries, 4});
    const Tensor lse = backend_->Allocate({1, 1, queries}), dqkv = Clone(qkv);
    const int64_t block = 4 * std::min(64, queries) * (first + queries);
    arena_.ResetPeaks();
    backend_->attention().Forward(shape, qkv, out, lse);
    EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(block));
    backend_->attention().Gradient(shape, out, qkv, out, lse, dqkv);
    EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), Bytes(2 * block));
  }
}

TEST_P(BackendTest, RefusesShapesThatDoNotFit) {
  const Tensor x = Random({2, 3}, "x"), w = Random({4, 5}, "w"), y = Random({2, 5}, "y");
  EXPECT_DEATH(backend_->Linear(x, w, Tensor(), y), "Linear: x \\[2, 3\\], w \\[4, 5\\]");
  EXPECT_DEATH(backend_->Add(x, w, y), "Add");
  AttentionShape beyond{1, 2, 1, 1, true};
  beyond.first_query = 1;
  beyond.queries = 2;
  EXPECT_DEATH(backend_->attention().Forward(beyond, x, x, x), "queries \\[1, 3\\) of 2 tokens");
  const int32_t lengths[] = {3};
  AttentionShape padded{1, 2, 1, 1, false};
  padded.key_lengths = lengths;
  EXPECT_DEATH(backend_->attention().Forward(padded, x, x, x), "Attention: 3 of 2 keys");
  padded.causal = true;
  EXPECT_DEATH(backend_->attention().Forward(padded, x, x, x), "key lengths in causal attention");
  AttentionShape window{1, 2, 1, 1, false};
  window.window = 1;
  EXPECT_DEATH(backend_->attention().Forward(window, x, x, x), "a window of 1 without a causal");
  EXPECT_DEATH(backend_->attention().ShareHead(w, x), "ShareHead: \\[4, 5\\] and \\[2, 3\\]");
  EXPECT_DEATH(backend_->attention().CrossForward({1, 2, 4, 1, 3}, x, x, x, x),
               "CrossAttention: \\[2, 3\\] where 4 rows of 6 belong");
  EXPECT_DEATH(backend_->loss().CrossEntropy(x, Int({0, 3})), "index 3 of a table of 3");
  EXPECT_DEATH(backend_->loss().SquaredError(x, w), "SquaredError: \\[4, 5\\]");
  SgdOptions sgd;
  sgd.momentum = 0.9f;
  EXPECT_DEATH(backend_->optimizer().Sgd(sgd, x, x, Tensor()), "Sgd: momentum without a velocity");
  EXPECT_DEATH(backend_->optimizer().Sgd(sgd, x, x, w), "Sgd: \\[4, 5\\] beside \\[2, 3\\]");
  DropoutMask mask;
  mask.rate = 1;
  EXPECT_DEATH(backend_->Dropout(x, mask, x), "dropout rate of 1");
}

TEST_P(BackendTest, NoRowsAreNoWork) {
  const Tensor x = backend_->Allocate({0, 4}), w = Random({4, 3}, "w"), b = Random({3}, "b");
  const Tensor y = backend_->Allocate({0, 3}), dw = Clone(w);
  backend_->Linear(x, w, b, y);
  backend_->LinearWeightGradient(x, y, dw, b);
  EXPECT_TRUE(SameBits(dw, w));
}

INSTANTIATE_TEST_SUITE_P(All, BackendTest, AllBackends(), BackendName);

TEST(CpuBackend, LibraryTimeIsPartOfTheWallTime) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const Tensor x = arena.Zeros(DataType::kFloat32, {256, 256}, MemoryKind::kActivation);
  const Tensor y = backend->Allocate({256, 256});
  EXPECT_EQ(backend->library_ns(), 0);
  backend->Gelu(x, y);
  EXPECT_EQ(backend->library_ns(), 0) << "own loops are not the library";
  backend->Linear(x, x, Tensor(), y);
  EXPECT_GT(backend->library_ns(), 0);
  EXPECT_EQ(backend->reorder_ns(), 0) << "products take weights as they are";
  ConvolutionShape s;
  s.samples = s.kernel_height = s.kernel_width = 3;
  s.height = s.width = 8;
  s.in_channels = s.out_channels = 32;
  const Tensor image = arena.Zeros(DataType::kFloat32, {3, 8, 8, 32}, MemoryKind::kActivation);
  const Tensor w = arena.Zeros(DataType::kFloat32, {3, 3, 32, 32}, MemoryKind::kParameter);
  const Tensor result = backend->Allocate({3, 6, 6, 32});
  const int64_t before = backend->library_ns();
  backend->convolution().Forward(s, image, w, Tensor(), result);
  EXPECT_GT(backend->reorder_ns(), 0);
  EXPECT_GT(backend->library_ns() - before, backend->reorder_ns());
}

// The bound that simd.h states, 2^-22 relative, over the whole range of normal results.
TEST(FastExp, IsWithinItsErrorBound) {
  double worst = 0;
  for (float x = -87.3f; x < 88.3f; x += 0.00037f) {
    const double want = std::exp(double{x});
    worst = std::max(worst, std::abs(FastExp(x) - want) / want);
  }
  EXPECT_LT(worst, 0x1.0p-22);
  EXPECT_EQ(FastExp(0), 1.0f);
  EXPECT_EQ(FastExp(-1e30f), FastExp(-87.33654f));
  EXPECT_TRUE(std::isfinite(FastExp(1e30f)));
  EXPECT_TRUE(std::isnan(FastExp(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace pipelab
