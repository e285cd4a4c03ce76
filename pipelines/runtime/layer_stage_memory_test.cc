// Stage costs against arenas: what the planner says that a stage holds is what it holds, to the
// byte.
#include <functional>
#include <memory>
#include <utility>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/test_layers.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/runtime/layer_pipeline.h"
#include "pipelines/runtime/layer_stage.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// A stage alone on an arena, its neighbours played by random tensors.
class MeasuredStage {
 public:
  MeasuredStage(const ModelGraph& graph, int begin, int end, int64_t samples)
      : data_(static_cast<int64_t>(Attribute(graph.layers[0], "tokens")), 11),
        backend_(MakeCpuBackend(&arena_)) {
    LayerStageOptions o;
    o.micro_batch_samples = samples;
    o.data = &data_;
    o.batch_tokens = 100;
    auto stage = LayerStage::Create(graph, begin, end, backend_.get(), o);
    CHECK(stage.ok()) << stage.status();
    stage_ = *std::move(stage);
  }

  Bytes state() const { return arena_.peak_state(); }
  Bytes held() const { return arena_.current_transient(); }

  // The tensors that arrive on an edge; none where there is none.
  std::vector<Tensor> Arrive(const TensorSpec& spec) {
    std::vector<Tensor> tensors;
    if (!spec.shape.empty()) tensors.push_back(RandomTensor(backend_.get(), spec.shape, "x", 1));
    return tensors;
  }
  // A forward's peak and output; the output goes to its consumer.
  Bytes Forward(int mb, bool drop, Bytes* output) {
    std::vector<Tensor> x = Arrive(stage_->InputSpec(0, 0));
    return Peak([&] {
      auto y = stage_->Forward(MakeAction(ActionKind::kForward, 0, mb), std::move(x), drop);
      CHECK(y.ok()) << y.status();
      *output = y->empty() ? Bytes(0) : Bytes((*y)[0].bytes());
    });
  }
  Bytes Recompute(int mb) {
    return Peak([&] { CHECK(stage_->Recompute(MakeAction(ActionKind::kRecompute, 0, mb)).ok()); });
  }
  Bytes Backward(int mb, ActionKind kind) {
    std::vector<Tensor> dy = Arrive(stage_->OutputSpec(0, 0));
    return Peak([&] {
      auto dx = stage_->Backward(MakeAction(kind, 0, mb), std::move(dy));
      CHECK(dx.ok()) << dx.status();
    });
  }
  Bytes Weights(int mb) {
    return Peak([&] {
      CHECK(stage_->BackwardWeight(MakeAction(ActionKind::kBackwardWeight, 0, mb)).ok());
    });
  }

 private:
  Bytes Peak(const std::function<void()>& pass) {
    const Bytes before = arena_.current_transient();
    arena_.ResetPeaks();
    pass();
    return arena_.peak_transient() - before;
  }

  RandomTokens data_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LayerStage> stage_;
};

void CheckStage(const ModelGraph& graph, int begin, int end, int64_t samples) {
  const StageMemory memory = ComputeStageMemory(graph, begin, end, samples);
  const Bytes input = begin == 0 ? Bytes(0) : graph.layers[begin - 1].costs(samples).output;
  MeasuredStage stage(graph, begin, end, samples);
  EXPECT_EQ(stage.state().value(), memory.state.value());
  Bytes output;
  // Two micro-batches in flight: fused and split.
  EXPECT_EQ(stage.Forward(0, false, &output).value(), memory.forward_peak.value());
  EXPECT_EQ(output.value(), graph.layers[end - 1].costs(samples).output.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value());
  EXPECT_EQ(stage.Forward(1, false, &output).value(), memory.forward_peak.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value() * 2);
  EXPECT_EQ(stage.Backward(0, ActionKind::kBackward).value(), memory.backward_peak.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value());
  EXPECT_EQ(stage.Backward(1, ActionKind::kBackwardInput).value(),
            memory.backward_input_peak.value());
  EXPECT_EQ(stage.held().value(), memory.kept_for_weight.value());
  EXPECT_EQ(stage.Weights(1).value(), memory.backward_weight_peak.value());
  EXPECT_EQ(stage.held().value(), 0);
  // Recompute.
  EXPECT_EQ(stage.Forward(2, true, &output).value(), memory.forward_drop_peak.value());
  EXPECT_EQ(stage.held().value(), input.value());
  EXPECT_EQ(stage.Recompute(2).value(), memory.recompute_peak.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value());
  EXPECT_EQ(stage.Backward(2, ActionKind::kBackward).value(), memory.backward_peak.value());
  EXPECT_EQ(stage.held().value(), 0);
}

TEST(StageMemory, HoldsToTheByte) {
  for (int64_t tokens : {6, 70}) {
    for (double dropout : {0.0, 0.1}) {
      for (bool tied : {false, true}) {
        GptConfig config = SmallGpt(dropout, tied);
        config.tokens = tokens;
        const ModelGraph graph = *BuildGpt(config);
        for (int begin = 0; begin < 6; ++begin) {
          for (int end = begin + 1; end <= 6; ++end) {
            SCOPED_TRACE(testing::Message()
                         << "layers " << begin << " to " << end << ", tokens " << tokens
                         << ", dropout " << dropout << (tied ? ", tied" : ""));
            CheckStage(graph, begin, end, /*samples=*/3);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
