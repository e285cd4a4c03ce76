// Parts of a vocabulary together are the whole: the loss, the input's gradient and the tables'
// against plain loops in double and finite differences; and bytes against arenas.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/test_layers.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

constexpr int64_t kWordSamples = 2, kWordTokens = 5, kWordRows = kWordSamples * kWordTokens,
                  kWordHidden = 6, kWords = 11;

struct Case {
  int parts;
  bool padded, local;
  std::unique_ptr<Backend> (*make)(Arena*);
};

std::vector<float> Flat(const Tensor& x) { return HostValues(x); }

// The parts of an output layer and their loss on one arena.
class Parts {
 public:
  explicit Parts(const Case& c) : case_(c), backend_(c.make(&arena_)) {
    VocabularyLossSizes loss;
    loss.name = "loss";
    loss.parts.assign(c.parts, 0);
    loss.tokens = kWordTokens;
    loss.vocabulary = kWords;
    loss.padded_targets = c.padded;
    loss.local_gradient = c.local;
    loss.hidden = kWordHidden;
    for (int k = 0; k < c.parts; ++k) {
      VocabularyShardSizes s;
      s.name = absl::StrCat("part", k);
      s.tokens = kWordTokens;
      s.hidden = kWordHidden;
      s.part = {kWords, kWords * k / c.parts, 0};
      s.part.words = kWords * (k + 1) / c.parts - s.part.first;
      s.padded_targets = c.padded;
      s.local_gradient = c.local;
      parts_.push_back(Rig(VocabularyShardSpec(s)));
    }
    loss_ = Rig(VocabularyLossSpec(loss));
    x_MC = RandomTensor(backend_.get(), {kWordRows, kWordHidden}, "x", 2);
  }

  double Loss() {
    inputs_ = std::vector<Tensor>(case_.local ? 1 : 0, x_MC);
    for (auto& part : parts_) {
      inputs_.push_back(part->layer->Forward(part->ctx, {x_MC}, &part->stash));
    }
    loss_->loss = 0;
    loss_->layer->Forward(loss_->ctx, inputs_, &loss_->stash);
    return loss_->loss;
  }

  // After Loss. Returns the input's gradient; the tables' are in parameters.
  std::vector<double> Backward() {
    std::vector<double> dx(kWordRows * kWordHidden);
    const auto add = [&](const Tensor& gradient) {
      if (gradient.empty()) return;
      const std::vector<float> values = Flat(gradient);
      for (size_t i = 0; i < dx.size(); ++i) dx[i] += values[i];
    };
    std::vector<Tensor> dy = loss_->layer->BackwardInput(loss_->ctx, inputs_, {}, &loss_->stash);
    if (case_.local) add(dy[0]);
    for (int k = 0; k < case_.parts; ++k) {
      LayerRig& part = *parts_[k];
      add(part.layer->BackwardInput(part.ctx, {x_MC}, std::move(dy[k + (case_.local ? 1 : 0)]),
                                    &part.stash)[0]);
      part.layer->BackwardWeight(part.ctx, {x_MC}, &part.stash);
    }
    return dx;
  }

  std::vector<float> Tables(bool gradients) const {  // of all parts: [V, C]
    std::vector<float> all;
    for (const auto& part : parts_) {
      const Parameter& p = part->parameters[0];
      const std::vector<float> values = Flat(gradients ? p.gradient : p.value);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  absl::Span<const int32_t> targets() const { return loss_->view.HostIdsOf(0); }
  float scale() const { return loss_->ctx.loss_scale; }
  Backend* backend() { return backend_.get(); }

 private:
  std::unique_ptr<LayerRig> Rig(const LayerSpec& spec) {
    return std::make_unique<LayerRig>(spec, backend_.get(), kWordSamples);
  }

  Case case_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<LayerRig>> parts_;
  std::unique_ptr<LayerRig> loss_;
  std::vector<Tensor> inputs_;

 public:
  Tensor x_MC;
};

struct Whole {
  double loss = 0;
  std::vector<double> dx = std::vector<double>(kWordRows * kWordHidden);
  std::vector<double> dtable = std::vector<double>(kWords * kWordHidden);
};

Whole InPlainLoops(const std::vector<float>& x, const std::vector<float>& table,
                   absl::Span<const int32_t> targets, double scale) {
  Whole w;
  for (int64_t i = 0; i < kWordRows; ++i) {
    if (targets[i] == kNoTarget) continue;
    std::vector<double> logits(kWords);
    double sum = 0;
    for (int64_t v = 0; v < kWords; ++v) {
      for (int64_t c = 0; c < kWordHidden; ++c) {
        logits[v] += double{x[i * kWordHidden + c]} * table[v * kWordHidden + c];
      }
      sum += std::exp(logits[v]);
    }
    w.loss += std::log(sum) - logits[targets[i]];
    for (int64_t v = 0; v < kWords; ++v) {
      const double d = scale * (std::exp(logits[v]) / sum - (v == targets[i] ? 1 : 0));
      for (int64_t c = 0; c < kWordHidden; ++c) {
        w.dx[i * kWordHidden + c] += d * table[v * kWordHidden + c];
        w.dtable[v * kWordHidden + c] += d * x[i * kWordHidden + c];
      }
    }
  }
  return w;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (auto make : {&MakeReferenceBackend, &MakeCpuBackend}) {
    for (int parts : {1, 2, 3, 11}) {
      for (bool padded : {false, true}) {
        for (bool local : {false, true}) cases.push_back({parts, padded, local, make});
      }
    }
  }
  return cases;
}

TEST(VocabularyParts, AreTheWholeOutput) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(absl::StrCat(c.parts, " parts, padded ", c.padded, ", local ", c.local));
    Parts parts(c);
    const Whole whole = InPlainLoops(Flat(parts.x_MC), parts.Tables(/*gradients=*/false),
                                     parts.targets(), parts.scale());
    EXPECT_NEAR(parts.Loss(), whole.loss, 1e-5 * whole.loss);
    const std::vector<double> dx = parts.Backward();
    const std::vector<float> dtable = parts.Tables(/*gradients=*/true);
    for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i], whole.dx[i], 1e-6) << i;
    for (size_t i = 0; i < dtable.size(); ++i) ASSERT_NEAR(dtable[i], whole.dtable[i], 1e-6) << i;
  }
}

// The loss along a direction of the input, by differences of the layers' own losses.
TEST(VocabularyParts, InputGradientIsTheSlope) {
  for (const Case& c : Cases()) {
    Parts parts(c);
    parts.Loss();
    const std::vector<double> dx = parts.Backward();
    const std::vector<float> x = Flat(parts.x_MC);
    const std::vector<float> u =
        Flat(RandomTensor(parts.backend(), {kWordRows, kWordHidden}, "direction", 1));
    const auto at = [&](float h) {
      std::vector<float> moved = x;
      for (size_t i = 0; i < x.size(); ++i) moved[i] += h * u[i];
      SetHostValues(parts.x_MC, moved);
      return parts.Loss();
    };
    const float h = 1e-2f;
    double slope = 0;
    for (size_t i = 0; i < dx.size(); ++i) slope += dx[i] / parts.scale() * u[i];
    EXPECT_NEAR((at(h) - at(-h)) / (2 * h), slope, 5e-3 * (1 + std::abs(slope)));
  }
}

// A part whose words are next to impossible has a share that no float can hold, and no NaN.
TEST(VocabularyParts, AShareOfNothing) {
  Parts parts({2, false, false, &MakeReferenceBackend});
  std::vector<float> x(kWordRows * kWordHidden, 0.0f);
  for (int64_t i = 0; i < kWordRows; ++i) x[i * kWordHidden] = 1000;
  SetHostValues(parts.x_MC, x);
  EXPECT_TRUE(std::isfinite(parts.Loss()));
  for (double d : parts.Backward()) ASSERT_TRUE(std::isfinite(d));
  for (float d : parts.Tables(/*gradients=*/true)) ASSERT_TRUE(std::isfinite(d));
}

TEST(VocabularyParts, SumToTheWholeEmbedding) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  for (int parts : {1, 3, 11}) {
    std::vector<float> sum(kWordRows * kWordHidden), expected(kWordRows * kWordHidden);
    for (int k = 0; k < parts; ++k) {
      VocabularyEmbeddingSizes s;
      s.name = absl::StrCat("part", k);
      s.tokens = kWordTokens;
      s.hidden = kWordHidden;
      s.part = {kWords, kWords * k / parts, kWords * (k + 1) / parts - kWords * k / parts};
      s.positions = k == 0;
      LayerRig rig(VocabularyEmbeddingSpec(s), backend.get(), kWordSamples);
      const std::vector<float> y = Flat(rig.layer->Forward(rig.ctx, {}, &rig.stash));
      const std::vector<float> table = Flat(rig.parameters[0].value);
      for (int64_t i = 0; i < kWordRows; ++i) {
        const int64_t word = rig.view.HostIdsOf(0)[i] - s.part.first;
        const bool own = word >= 0 && word < s.part.words;
        for (int64_t c = 0; c < kWordHidden; ++c) {
          float& e = expected[i * kWordHidden + c];
          if (own) e += table[word * kWordHidden + c];
          if (k == 0) e += Flat(rig.parameters[1].value)[i % kWordTokens * kWordHidden + c];
          sum[i * kWordHidden + c] += y[i * kWordHidden + c];
        }
      }
      const Tensor dy = RandomTensor(backend.get(), {kWordRows, kWordHidden}, "dy", 1);
      std::vector<float> dtable(table.size());
      for (int64_t i = 0; i < kWordRows; ++i) {
        const int64_t word = rig.view.HostIdsOf(0)[i] - s.part.first;
        if (word < 0 || word >= s.part.words) continue;
        for (int64_t c = 0; c < kWordHidden; ++c) {
          dtable[word * kWordHidden + c] += Flat(dy)[i * kWordHidden + c];
        }
      }
      rig.layer->BackwardInput(rig.ctx, {}, dy, &rig.stash);
      rig.layer->BackwardWeight(rig.ctx, {}, &rig.stash);
      EXPECT_EQ(Flat(rig.parameters[0].gradient), dtable);
    }
    EXPECT_EQ(sum, expected) << parts;
  }
}

}  // namespace
}  // namespace pipelab
