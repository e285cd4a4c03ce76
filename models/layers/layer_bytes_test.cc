// Specifications against arenas: what a layer says that it holds is what it holds, to the byte.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/compute_device.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/test_graphs.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_specs.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// The device that layers are on. In bfloat16 the emulated one, as a GPU has them.
ComputeDevice OnReference() { return {nullptr, &MakeReferenceBackend}; }
ComputeDevice OnCpu() { return {nullptr, &MakeCpuBackend}; }
ComputeDevice InBFloat16() {
  std::shared_ptr<gpu::Device> device = gpu::MakeEmulatedDevice();
  return {device,
          [device](Arena* arena) { return MakeCudaBackend(arena, device, DataType::kBFloat16); }};
}
using MakeDevice = ComputeDevice (*)();

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

class LayerBytes : public testing::TestWithParam<MakeDevice> {
 protected:
  // One layer alone on an arena: inputs and dy come from "outside" and are handed over as a stage
  // does.
  struct Run {
    Run(const LayerSpec& spec, int64_t samples, const ComputeDevice& device)
        : arena(device.memory),
          backend(device.make_backend(&arena)),
          rig(spec, backend.get(), samples) {
      inputs = RandomInputs(spec, backend.get(), samples);
      base = arena.current_transient();
      forward_peak = PeakOf(&arena, [&] { y = rig.layer->Forward(rig.ctx, inputs, &rig.stash); });
      output = Bytes(y.bytes());
      kept = Held() - output;
      if (!y.empty()) dy = RandomTensor(backend.get(), y.shape(), "dy", 1);
      y = Tensor();
      // What the backward does not read has gone by then.
      if (spec.input_use == InputUse::kForward) Drop();
    }
    void Drop() {
      for (Tensor& x : inputs) {
        base -= Bytes(x.bytes());
        x = Tensor();
      }
    }
    // Besides the inputs.
    Bytes Held() { return arena.current_transient() - base; }

    Arena arena;
    std::unique_ptr<Backend> backend;
    LayerRig rig;
    std::vector<Tensor> inputs;
    Tensor y, dy;
    Bytes base, forward_peak, output, kept;
  };

  void CheckLayer(LayerSpec spec, int64_t samples) {
    const ComputeDevice device = GetParam()();
    Run split(spec, samples, device);
    const auto set_costs = spec.set_costs;
    set_costs(NumberWidth{SizeOf(split.backend->activation_type())}, &spec);
    const LayerCosts costs = spec.costs(samples);
    EXPECT_EQ(split.forward_peak.value(), costs.forward_peak.value());
    EXPECT_EQ(split.output.value(), costs.output.value());
    EXPECT_EQ(split.kept.value(), costs.kept.value());
    std::vector<Tensor> dx;
    const Bytes input_peak = PeakOf(&split.arena, [&] {
      dx = split.rig.layer->BackwardInput(split.rig.ctx, split.inputs, std::move(split.dy),
                                          &split.rig.stash);
    });
    EXPECT_EQ(input_peak.value(), costs.backward_input_peak.value());
    ASSERT_EQ(dx.size(), spec.inputs.size());
    for (size_t k = 0; k < dx.size(); ++k) {
      EXPECT_EQ(dx[k].shape(), RowsOf(spec.input_shapes[k], samples));
    }
    dx.clear();
    if (spec.input_use == InputUse::kInputGradient) split.Drop();
    EXPECT_EQ(split.Held().value(), costs.kept_for_weight.value());
    const Bytes weight_peak = PeakOf(&split.arena, [&] {
      split.rig.layer->BackwardWeight(split.rig.ctx, split.inputs, &split.rig.stash);
    });
    EXPECT_EQ(weight_peak.value(), costs.backward_weight_peak.value());
    EXPECT_EQ(split.Held().value(), 0);

    Run fused(spec, samples, device);
    const Bytes backward_peak = PeakOf(&fused.arena, [&] {
      dx = fused.rig.layer->BackwardInput(fused.rig.ctx, fused.inputs, std::move(fused.dy),
                                          &fused.rig.stash);
      fused.rig.layer->BackwardWeight(fused.rig.ctx, fused.inputs, &fused.rig.stash);
    });
    EXPECT_EQ(backward_peak.value(), costs.backward_peak.value());
    dx.clear();  // before its arena
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
      CheckLayer(spec, s.samples);
    }
  }
}

TEST_P(LayerBytes, JoinsHoldToTheByte) {
  for (const LayerSpec& spec : JoinLayers()) {
    for (int64_t samples : {1, 3}) {
      SCOPED_TRACE(testing::Message() << spec.name << ", samples " << samples);
      CheckLayer(spec, samples);
    }
  }
}

TEST_P(LayerBytes, OtherNetsHoldToTheByte) {
  for (const LayerSpec& spec : NetLayers()) {
    for (int64_t samples : {1, 3}) {
      SCOPED_TRACE(testing::Message() << spec.name << ", samples " << samples);
      CheckLayer(spec, samples);
    }
  }
}

TEST_P(LayerBytes, ImagesHoldToTheByte) {
  for (const LayerSpec& spec : ImageLayers()) {
    for (int64_t samples : {1, 3}) {
      SCOPED_TRACE(testing::Message() << spec.name << ", samples " << samples);
      CheckLayer(spec, samples);
    }
  }
}

std::string DeviceName(const testing::TestParamInfo<MakeDevice>& info) {
  constexpr const char* kNames[] = {"reference", "cpu", "bfloat16"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Backends, LayerBytes, testing::Values(&OnReference, &OnCpu, &InBFloat16),
                         DeviceName);

}  // namespace
}  // namespace pipelab
