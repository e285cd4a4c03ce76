// Specifications against arenas: what a layer says that it holds is what it holds, to the byte.
#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/test_layers.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using MakeBackend = std::unique_ptr<Backend> (*)(Arena*);

struct Sizes {
  int64_t samples, hidden, heads, tokens, vocabulary;
  double dropout;
};

// Runs one pass and returns its peak above the level at its start.
Bytes PeakOf(Arena* arena, const std::function<void()>& pass) {
  const Bytes before = arena->current_transient();
  arena->ResetPeaks();
  pass();
  return arena->peak_transient() - before;
}

class LayerBytes : public testing::TestWithParam<MakeBackend> {
 protected:
  // One layer alone on an arena: x and dy come from "outside" and are handed over as a stage does.
  struct Run {
    Run(const LayerSpec& spec, int64_t samples, int64_t width, MakeBackend make)
        : backend(make(&arena)), rig(spec, backend.get(), samples) {
      const int64_t m = samples * TokensOf(spec);
      if (!spec.inputs.empty()) x = RandomTensor(backend.get(), {m, width}, "x", 1);
      base = arena.current_transient() - Bytes(x.bytes());
      forward_peak = PeakOf(&arena, [&] { y = rig.layer->Forward(rig.ctx, x, &rig.stash); });
      output = Bytes(y.bytes());
      kept = Held() - Bytes(x.bytes()) - output;
      if (!y.empty()) dy = RandomTensor(backend.get(), {m, width}, "dy", 1);
      y = Tensor();
    }
    static int64_t TokensOf(const LayerSpec& spec) {
      return spec.output_shape.empty() ? static_cast<int64_t>(Attribute(spec, "tokens"))
                                       : spec.output_shape[0];
    }
    Bytes Held() { return arena.current_transient() - base; }

    Arena arena;
    std::unique_ptr<Backend> backend;
    LayerRig rig;
    Tensor x, y, dy;
    Bytes base, forward_peak, output, kept;
  };

  void CheckLayer(const LayerSpec& spec, int64_t samples, int64_t width) {
    const LayerCosts costs = spec.costs(samples);
    Run split(spec, samples, width, GetParam());
    EXPECT_EQ(split.forward_peak.value(), costs.forward_peak.value());
    EXPECT_EQ(split.output.value(), costs.output.value());
    EXPECT_EQ(split.kept.value(), costs.kept.value());
    Tensor dx;
    const Bytes input_peak = PeakOf(&split.arena, [&] {
      dx = split.rig.layer->BackwardInput(split.rig.ctx, split.x, std::move(split.dy),
                                          &split.rig.stash);
    });
    EXPECT_EQ(input_peak.value(), costs.backward_input_peak.value());
    EXPECT_EQ(dx.bytes(), split.x.bytes());
    dx = Tensor();
    EXPECT_EQ(split.Held().value(), costs.kept_for_weight.value());  // x among it
    const Bytes weight_peak = PeakOf(&split.arena, [&] {
      split.rig.layer->BackwardWeight(split.rig.ctx, split.x, &split.rig.stash);
    });
    EXPECT_EQ(weight_peak.value(), costs.backward_weight_peak.value());
    EXPECT_EQ(split.Held().value(), split.x.bytes());

    Run fused(spec, samples, width, GetParam());
    const Bytes backward_peak = PeakOf(&fused.arena, [&] {
      dx = fused.rig.layer->BackwardInput(fused.rig.ctx, fused.x, std::move(fused.dy),
                                          &fused.rig.stash);
      fused.rig.layer->BackwardWeight(fused.rig.ctx, fused.x, &fused.rig.stash);
    });
    EXPECT_EQ(backward_peak.value(), costs.backward_peak.value());
    dx = Tensor();  // before its arena
  }
};

TEST_P(LayerBytes, SpecificationsHoldToTheByte) {
  const Sizes sizes[] = {
      {1, 8, 2, 5, 7, 0.1},     // hidden below and
      {3, 8, 2, 5, 40, 0},      // vocabulary above the rest
      {2, 32, 4, 70, 19, 0.2},  // two blocks of attention rows
      {1, 4, 1, 130, 3, 0},     // the attention's scratch is larger than its output
      {1, 4, 4, 130, 3, 0.5},
  };
  for (const Sizes& s : sizes) {
    GptConfig config;
    config.layers = 1;
    config.hidden = s.hidden;
    config.heads = s.heads;
    config.tokens = s.tokens;
    config.vocabulary = s.vocabulary;
    config.dropout = s.dropout;
    PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph graph, BuildGpt(config));
    for (const LayerSpec& spec : graph.layers) {
      SCOPED_TRACE(testing::Message()
                   << spec.name << ", samples " << s.samples << ", hidden " << s.hidden
                   << ", tokens " << s.tokens << ", dropout " << s.dropout);
      CheckLayer(spec, s.samples, s.hidden);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LayerBytes,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab
