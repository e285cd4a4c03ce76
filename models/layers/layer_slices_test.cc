// Layers on slices of the tokens: the numbers of whole samples, and the bytes that the slices'
// specifications say.
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/data_view.h"
#include "models/layers/test_layers.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kSliceSamples = 3, kSliceWords = 11;

using SliceBackend = std::unique_ptr<Backend> (*)(Arena*);

ModelGraph SlicedGpt(int64_t tokens, double dropout) {
  GptConfig config = SmallGpt(dropout, /*tied=*/false);
  config.layers = 1;
  config.tokens = tokens;
  config.vocabulary = kSliceWords;
  absl::StatusOr<ModelGraph> graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

// And a layer of experts, and attention with a window.
std::vector<LayerSpec> Layers(int64_t tokens, double dropout) {
  std::vector<LayerSpec> layers = SlicedGpt(tokens, dropout).layers;
  GptConfig config = LlamaConfig(/*layers=*/1, /*hidden=*/16, /*heads=*/2, /*feed_forward=*/12,
                                 tokens, kSliceWords);
  config.dropout = dropout;
  config.experts.experts = 4;
  config.experts.chosen = 2;
  config.experts.shared = 1;
  absl::StatusOr<ModelGraph> graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  layers.push_back(graph->layers[2]);
  config.windows = {tokens > 64 ? 40 : 2};
  graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  layers.push_back(graph->layers[1]);
  return layers;
}

struct Slicing {
  int64_t tokens;
  std::vector<int64_t> lengths;
};

std::vector<Slicing> Slicings() {
  return {{6, {3, 3}},     {6, {1, 4, 1}},  {6, {1, 1, 1, 1, 1, 1}},
          {6, {5, 1}},     {70, {64, 6}},   {70, {30, 30, 10}},
          {140, {64, 76}}, {140, {70, 70}}, {130, {10, 100, 20}}};
}

// One layer whose micro-batch comes in slices.
class SlicedLayer {
 public:
  SlicedLayer(const LayerSpec& spec, int64_t tokens, const std::vector<int64_t>& lengths,
              Backend* backend)
      : tokens_(tokens),
        data_(tokens, kSliceWords),
        rig_(spec, backend, kSliceSamples),
        slices_(*MakeTokenSlices(lengths, tokens)),
        stashes_(slices_.size()) {
    for (const TokenSlice& slice : slices_) {
      views_.push_back(LoadData(spec, data_, &backend->arena(), rig_.ctx.step,
                                rig_.ctx.first_sample, kSliceSamples, slice));
      int64_t bytes = 0;
      for (const Tensor& t : views_.back().fields) bytes += t.bytes();
      EXPECT_EQ(DataBytes(spec, kSliceSamples, slice).value(), bytes);
    }
  }

  const std::vector<TokenSlice>& slices() const { return slices_; }
  LayerRig& rig() { return rig_; }

  Tensor Forward(int k, const Tensor& x) {
    return rig_.layer->Forward(Context(k), Inputs(x), &stashes_[k]);
  }
  void Drop(int k) { stashes_[k] = LayerStash(); }
  Tensor BackwardInput(int k, const Tensor& x, Tensor dy) {
    std::vector<Tensor> dx =
        rig_.layer->BackwardInput(Context(k), Inputs(x), std::move(dy), &stashes_[k]);
    return dx.empty() ? Tensor() : std::move(dx[0]);
  }
  void BackwardWeight(int k, const Tensor& x) {
    rig_.layer->BackwardWeight(Context(k), Inputs(x), &stashes_[k]);
  }

  // The slice's rows of whole samples.
  Tensor Cut(int k, const Tensor& whole) {
    if (whole.empty()) return Tensor();
    const TokenSlice& slice = slices_[k];
    Shape shape = whole.shape();
    shape[0] = kSliceSamples * slice.count;
    Tensor part = rig_.ctx.backend->Allocate(shape);
    for (int64_t s = 0; s < kSliceSamples; ++s) {
      const int64_t row = s * tokens_ + slice.first;
      rig_.ctx.backend->Copy(whole.Rows(row, row + slice.count),
                             part.Rows(s * slice.count, (s + 1) * slice.count));
    }
    return part;
  }

 private:
  LayerContext Context(int k) {
    LayerContext ctx = rig_.ctx;
    ctx.slice = slices_[k];
    ctx.sequence = &sequence_;
    ctx.batch = &views_[k];
    return ctx;
  }
  static std::vector<Tensor> Inputs(const Tensor& x) {
    if (x.empty()) return {};
    return {x};
  }

  const int64_t tokens_;
  const RandomTokens data_;
  LayerRig rig_;
  const std::vector<TokenSlice> slices_;
  std::vector<LayerStash> stashes_;
  LayerStash sequence_;
  std::vector<BatchView> views_;
};

class LayerSlices : public testing::TestWithParam<SliceBackend> {
 protected:
  // Terms of at most some hundred products, of order 1, through a few sums in a row.
  static void ExpectNear(const Tensor& got, const Tensor& want, const char* what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    float most = 1e-3f;
    for (int64_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(want.f32()[i]));
    for (int64_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got.f32()[i], want.f32()[i], 1e-5 * most) << what << ", element " << i;
    }
  }

  void CompareWithWhole(const LayerSpec& spec, const Slicing& slicing) {
    Arena arena;
    const auto backend = GetParam()(&arena);
    LayerRig whole(spec, backend.get(), kSliceSamples);
    SlicedLayer sliced(spec, slicing.tokens, slicing.lengths, backend.get());
    const std::vector<Tensor> inputs = RandomInputs(spec, backend.get(), kSliceSamples);
    const Tensor x = inputs.empty() ? Tensor() : inputs[0];
    const Tensor y = whole.layer->Forward(whole.ctx, inputs, &whole.stash);
    const auto gradient = [&] {
      return y.empty() ? Tensor() : RandomTensor(backend.get(), y.shape(), "dy", 1);
    };
    const Tensor dy = gradient();
    const std::vector<Tensor> dx =
        whole.layer->BackwardInput(whole.ctx, inputs, gradient(), &whole.stash);
    whole.layer->BackwardWeight(whole.ctx, inputs, &whole.stash);
    const int n = static_cast<int>(sliced.slices().size());
    std::vector<Tensor> xs(n);
    for (int k = 0; k < n; ++k) {
      xs[k] = sliced.Cut(k, x);
      const Tensor got = sliced.Forward(k, xs[k]);
      if (!y.empty()) ExpectNear(got, sliced.Cut(k, y), "output");
    }
    for (int k = n; k-- > 0;) {
      const Tensor got = sliced.BackwardInput(k, xs[k], sliced.Cut(k, dy));
      if (!x.empty()) ExpectNear(got, sliced.Cut(k, dx[0]), "input gradient");
      sliced.BackwardWeight(k, xs[k]);
    }
    EXPECT_NEAR(sliced.rig().loss, whole.loss, 1e-5 * std::abs(whole.loss));
    for (size_t p = 0; p < whole.parameters.size(); ++p) {
      ExpectNear(sliced.rig().parameters[p].gradient, whole.parameters[p].gradient,
                 spec.parameters[p].name.c_str());
    }
  }

  // Each pass of each slice, from what the arena says.
  void CheckBytes(const LayerSpec& spec, const Slicing& slicing, bool drop) {
    Arena arena;
    const auto backend = GetParam()(&arena);
    SlicedLayer layer(spec, slicing.tokens, slicing.lengths, backend.get());
    const int n = static_cast<int>(layer.slices().size());
    std::vector<Tensor> xs(n);
    Tensor out;
    const auto check = [&](const char* pass, Bytes peak, Bytes change, const auto& run) {
      const Bytes before = arena.current_transient();
      arena.ResetPeaks();
      run();
      EXPECT_EQ((arena.peak_transient() - before).value(), peak.value()) << pass;
      out = Tensor();
      EXPECT_EQ((arena.current_transient() - before).value(), change.value()) << pass;
    };
    for (int k = 0; k < n; ++k) {
      SCOPED_TRACE(testing::Message() << "slice " << k);
      const LayerCosts c = CostsOf(spec, kSliceSamples, layer.slices()[k]);
      if (!spec.inputs.empty()) {
        const int64_t rows = kSliceSamples * layer.slices()[k].count;
        xs[k] = RandomTensor(backend.get(), {rows, spec.input_shapes[0][1]}, "x", 1);
      }
      check("forward", c.forward_peak, drop ? c.kept_when_dropped : c.kept, [&] {
        out = layer.Forward(k, xs[k]);
        EXPECT_EQ(out.bytes(), c.output.value());
        if (drop) layer.Drop(k);
      });
    }
    for (int k = n; k-- > 0;) {
      SCOPED_TRACE(testing::Message() << "slice " << k);
      const LayerCosts c = CostsOf(spec, kSliceSamples, layer.slices()[k]);
      if (drop) {
        const Bytes peak = c.kept_when_dropped > Bytes(0) ? c.recompute_peak : c.forward_peak;
        check("recompute", peak, c.kept - c.kept_when_dropped,
              [&] { out = layer.Forward(k, xs[k]); });
      }
      Tensor dy;
      if (c.output > Bytes(0)) {
        dy = RandomTensor(backend.get(), {c.output.value() / 4 / 16, 16}, "dy", 1);
      }
      const bool fused = k % 2 == 1;
      const Bytes carried = c.carried - c.kept - c.output;
      check("backward", fused ? c.backward_peak : c.backward_input_peak,
            fused ? carried : carried + c.kept_for_weight, [&] {
              out = layer.BackwardInput(k, xs[k], std::move(dy));
              if (fused) layer.BackwardWeight(k, xs[k]);
            });
    }
    for (int k = 0; k < n; k += 2) {  // weight parts in any order
      const LayerCosts c = CostsOf(spec, kSliceSamples, layer.slices()[k]);
      check("weight", c.backward_weight_peak, Bytes(0) - c.kept_for_weight,
            [&] { layer.BackwardWeight(k, xs[k]); });
    }
  }
};

TEST_P(LayerSlices, ComputeWhatWholeSamplesDo) {
  for (const Slicing& slicing : Slicings()) {
    for (double dropout : {0.0, 0.25}) {
      for (const LayerSpec& spec : Layers(slicing.tokens, dropout)) {
        SCOPED_TRACE(testing::Message() << spec.name << ", " << slicing.tokens << " tokens, "
                                        << slicing.lengths.size() << " slices, " << dropout);
        CompareWithWhole(spec, slicing);
      }
    }
  }
}

TEST_P(LayerSlices, SpecificationsHoldToTheByte) {
  for (const Slicing& slicing : Slicings()) {
    for (double dropout : {0.0, 0.25}) {
      for (const LayerSpec& spec : Layers(slicing.tokens, dropout)) {
        for (bool drop : {false, true}) {
          SCOPED_TRACE(testing::Message() << spec.name << ", " << slicing.tokens << " tokens, "
                                          << slicing.lengths.size() << " slices, dropout "
                                          << dropout << (drop ? ", recomputed" : ""));
          CheckBytes(spec, slicing, drop);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LayerSlices,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

// The flops of a sample's slices come to the sample's, but for the blocks of attention rows that
// end earlier; a later slice of the same length costs more.
TEST(LayerSliceCosts, AddUpToTheWhole) {
  const ModelGraph graph = SlicedGpt(/*tokens=*/256, /*dropout=*/0);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto slices, MakeTokenSlices({64, 64, 64, 64}, 256));
  for (const LayerSpec& spec : graph.layers) {
    const LayerCosts whole = spec.costs(kSliceSamples);
    LayerCosts sum;
    std::vector<double> forward;
    for (const TokenSlice& slice : slices) {
      const LayerCosts c = CostsOf(spec, kSliceSamples, slice);
      sum.forward += c.forward;
      sum.backward_input += c.backward_input;
      sum.backward_weight += c.backward_weight;
      sum.output += c.output;
      sum.kept += c.kept;
      sum.carried += c.carried;
      forward.push_back(c.forward.value());
    }
    EXPECT_DOUBLE_EQ(sum.forward.value(), whole.forward.value()) << spec.name;
    EXPECT_DOUBLE_EQ(sum.backward_input.value(), whole.backward_input.value()) << spec.name;
    EXPECT_DOUBLE_EQ(sum.backward_weight.value(), whole.backward_weight.value()) << spec.name;
    EXPECT_EQ(sum.output, whole.output) << spec.name;
    EXPECT_EQ(sum.kept, whole.kept) << spec.name;
    EXPECT_EQ(sum.carried, Bytes(0)) << spec.name;
    const bool attends = spec.name == "block0/attention";
    for (size_t k = 1; k < forward.size(); ++k) {
      EXPECT_EQ(forward[k] > forward[k - 1], attends) << spec.name;
    }
  }
}

}  // namespace
}  // namespace pipelab
