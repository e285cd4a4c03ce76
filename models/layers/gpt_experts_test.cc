// Mixtures of experts beside feed-forwards for all, and the balancing loss's gradient.
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/layer_spec.h"
#include "models/layers/test_layers.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_mlp_spec.h"

namespace pipelab {
namespace {

using Floats = std::vector<float>;
using MakeLayerBackend = std::unique_ptr<Backend> (*)(Arena*);

constexpr int64_t kChoiceSamples = 2, kChoiceTokens = 7, kChoiceHidden = 12, kChoiceInner = 10;

Floats FloatsOf(const Tensor& t) { return {t.f32().begin(), t.f32().end()}; }

LayerSpec ExpertsOf(const ExpertChoice& choice) {
  GptExpertsSizes s;
  s.name = "layer";
  s.tokens = kChoiceTokens;
  s.hidden = kChoiceHidden;
  s.inner = kChoiceInner;
  s.choice = choice;
  return GptExpertsSpec(s);
}

LayerSpec Dense() {
  GptMlpSizes s;
  s.name = "layer";
  s.tokens = kChoiceTokens;
  s.hidden = kChoiceHidden;
  s.inner = kChoiceInner;
  s.kind = FeedForwardKind::kSwiGlu;
  s.norm = NormKind::kRms;
  s.biases = false;
  return GptMlpSpec(s);
}

ExpertChoice Choice(int64_t experts, int64_t chosen) {
  ExpertChoice choice;
  choice.experts = experts;
  choice.chosen = chosen;
  return choice;
}

struct PassResult {
  Floats y, dx;
  std::vector<Floats> gradients;
};

// The first expert's parameters, as often as there are shared ones.
void CopyToShared(const std::vector<Parameter>& parameters) {
  const Tensor w1 = parameters[2].value.Rows(0, 1).Reshape({kChoiceHidden, 2 * kChoiceInner});
  const Tensor w2 = parameters[3].value.Rows(0, 1).Reshape({kChoiceInner, kChoiceHidden});
  const Tensor &shared_w1 = parameters[4].value, &shared_w2 = parameters[5].value;
  const int64_t all = shared_w2.dim(0);
  for (int64_t s = 0; s < all; ++s) {
    const int64_t f = s % kChoiceInner;
    for (int64_t c = 0; c < kChoiceHidden; ++c) {
      for (const int64_t half : {0, 1}) {
        shared_w1.f32()[c * 2 * all + half * all + s] =
            w1.f32()[c * 2 * kChoiceInner + half * kChoiceInner + f];
      }
      shared_w2.f32()[s * kChoiceHidden + c] = w2.f32()[f * kChoiceHidden + c];
    }
  }
}

// With as many copies of the first expert's parameters as there are experts.
PassResult RunBothPasses(const LayerSpec& spec, MakeLayerBackend make) {
  Arena arena;
  const auto backend = make(&arena);
  LayerRig rig(spec, backend.get(), kChoiceSamples);
  for (const Parameter& p : rig.parameters) {
    if (p.value.shape().size() != 3) continue;
    for (int64_t g = 1; g < p.value.dim(0); ++g) {
      backend->Copy(p.value.Rows(0, 1), p.value.Rows(g, g + 1));
    }
  }
  if (rig.parameters.size() > 4) CopyToShared(rig.parameters);
  const Tensor x =
      RandomTensor(backend.get(), {kChoiceSamples * kChoiceTokens, kChoiceHidden}, "x", 1);
  PassResult result;
  result.y = FloatsOf(rig.layer->Forward(rig.ctx, {x}, &rig.stash));
  Tensor dy = RandomTensor(backend.get(), {kChoiceSamples * kChoiceTokens, kChoiceHidden}, "dy", 1);
  result.dx = FloatsOf(rig.layer->BackwardInput(rig.ctx, {x}, std::move(dy), &rig.stash)[0]);
  rig.layer->BackwardWeight(rig.ctx, {x}, &rig.stash);
  for (const Parameter& p : rig.parameters) result.gradients.push_back(FloatsOf(p.gradient));
  return result;
}

class GptExpertsTest : public testing::TestWithParam<MakeLayerBackend> {};

// To the bit; the router learns nothing.
TEST_P(GptExpertsTest, OneExpertIsTheFeedForward) {
  const PassResult dense = RunBothPasses(Dense(), GetParam()),
                   experts = RunBothPasses(ExpertsOf(Choice(1, 1)), GetParam());
  EXPECT_EQ(experts.y, dense.y);
  EXPECT_EQ(experts.dx, dense.dx);
  ASSERT_EQ(experts.gradients.size(), 4);
  EXPECT_EQ(experts.gradients[0], dense.gradients[0]);
  EXPECT_EQ(experts.gradients[1], Floats(kChoiceHidden, 0.0f));
  EXPECT_EQ(experts.gradients[2], dense.gradients[1]);
  EXPECT_EQ(experts.gradients[3], dense.gradients[2]);
}

void ExpectNearScaled(const Floats& a, const Floats& b, double scale) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * scale) << i;
}

// Whatever the router chooses, weights that add up to 1 are the feed-forward's, and the gradients
// of all copies its gradient.
TEST_P(GptExpertsTest, EqualExpertsAreTheFeedForward) {
  const PassResult dense = RunBothPasses(Dense(), GetParam());
  for (const bool sigmoid : {false, true}) {
    ExpertChoice choice = Choice(5, 3);
    choice.sigmoid = sigmoid;
    const PassResult experts = RunBothPasses(ExpertsOf(choice), GetParam());
    ExpectNearScaled(experts.y, dense.y, 10);
    ExpectNearScaled(experts.dx, dense.dx, 10);
    ExpectNearScaled(experts.gradients[1], Floats(kChoiceHidden * 5, 0.0f), 100);
    for (const size_t k : {2, 3}) {
      const Floats &all = experts.gradients[k], &one = dense.gradients[k - 1];
      Floats sum(one.size(), 0.0f);
      for (size_t i = 0; i < all.size(); ++i) sum[i % one.size()] += all[i];
      ExpectNearScaled(sum, one, 100);
    }
  }
}

// A shared expert is one more feed-forward for all: with two shared ones and nothing of the chosen
// the branch is twice the feed-forward's.
TEST_P(GptExpertsTest, SharedExpertsAreForAllTokens) {
  ExpertChoice choice = Choice(4, 1);
  choice.shared = 2;
  choice.scale = 1e-30;
  Arena arena;
  const auto backend = GetParam()(&arena);
  const Floats x = FloatsOf(
      RandomTensor(backend.get(), {kChoiceSamples * kChoiceTokens, kChoiceHidden}, "x", 1));
  const Floats one = RunBothPasses(Dense(), GetParam()).y,
               two = RunBothPasses(ExpertsOf(choice), GetParam()).y;
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(two[i] - x[i], 2 * (one[i] - x[i]), 1e-4) << i;
}

// With no gradient from behind: that of the loss which the kernels' header states, by the router.
TEST_P(GptExpertsTest, BalancingLossReachesTheRouter) {
  ExpertChoice choice = Choice(4, 2);
  choice.balance = 3;
  const LayerSpec spec = ExpertsOf(choice);
  Arena arena;
  const auto backend = GetParam()(&arena);
  LayerRig rig(spec, backend.get(), kChoiceSamples);
  const int64_t m = kChoiceSamples * kChoiceTokens;
  const Tensor x = RandomTensor(backend.get(), {m, kChoiceHidden}, "x", 1);
  const Tensor norm = backend->Allocate({m, kChoiceHidden}), logits = backend->Allocate({m, 4});
  const Tensor& router = rig.parameters[1].value;
  backend->LayerNorm(x, rig.parameters[0].value, Tensor(), norm, Tensor(),
                     backend->AllocateFloats({m}));
  RouterShape shape;
  shape.samples = kChoiceSamples;
  shape.tokens = kChoiceTokens;
  shape.experts = 4;
  shape.chosen = 2;
  std::vector<int32_t> experts(2 * m), places(2 * m), begins(5);
  const auto loss = [&] {
    backend->Linear(norm, router, Tensor(), logits);
    const std::vector<double> wide(logits.f32().begin(), logits.f32().end());
    std::vector<double> weights(2 * m);
    reference::Route(shape, wide, absl::MakeSpan(weights),
                     {absl::MakeSpan(experts), absl::MakeSpan(places), absl::MakeSpan(begins)});
    return choice.balance * rig.ctx.loss_scale * reference::BalancingLoss(shape, wide, experts);
  };
  rig.layer->Forward(rig.ctx, {x}, &rig.stash);
  Tensor dy = backend->Allocate({m, kChoiceHidden});
  backend->Fill(dy, 0);
  rig.layer->BackwardInput(rig.ctx, {x}, std::move(dy), &rig.stash);
  rig.layer->BackwardWeight(rig.ctx, {x}, &rig.stash);
  const Floats gradient = FloatsOf(rig.parameters[1].gradient), start = FloatsOf(router);
  double squares = 0;
  for (float g : gradient) squares += double{g} * g;
  const double h = 1e-3 / std::sqrt(squares);  // so small a step that no choice changes
  const auto at = [&](double step) {
    for (size_t i = 0; i < start.size(); ++i) {
      router.f32()[i] = static_cast<float>(start[i] + step * gradient[i]);
    }
    return loss();
  };
  EXPECT_NEAR((at(h) - at(-h)) / (2 * h), squares, 1e-3 * squares);
}

INSTANTIATE_TEST_SUITE_P(Backends, GptExpertsTest,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab
