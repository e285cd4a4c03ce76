// Stage costs against arenas: what the planner says that a stage holds is what it holds, to the
// byte.
#include <functional>
#include <memory>
#include <utility>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/test_graphs.h"
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
  MeasuredStage(const ModelGraph& graph, const ModelPartition& partition, int stage,
                int64_t samples)
      : data_(graph.layers[0].data[0].shape[0], 11),
        num_inputs_(static_cast<int>(partition.stages.in_edges[stage].size())),
        num_outputs_(static_cast<int>(partition.stages.out_edges[stage].size())),
        backend_(MakeCpuBackend(&arena_)) {
    LayerStageOptions o;
    o.micro_batch_samples = samples;
    o.data = &data_;
    o.batch_tokens = 100;
    auto made = LayerStage::Create(graph, partition, stage, backend_.get(), o);
    CHECK(made.ok()) << made.status();
    stage_ = *std::move(made);
  }

  Bytes state() const { return arena_.peak_state(); }
  Bytes held() const { return arena_.current_transient(); }

  // A forward's peak and outputs; the outputs go to their consumers.
  Bytes Forward(int mb, bool drop, Bytes* output) {
    std::vector<Tensor> x;
    for (int e = 0; e < num_inputs_; ++e) x.push_back(Arrive(stage_->InputSpec(e, 0)));
    *output = Bytes(0);
    return Peak([&] {
      auto y = stage_->Forward(MakeAction(ActionKind::kForward, 0, mb), std::move(x), drop);
      CHECK(y.ok()) << y.status();
      for (const Tensor& t : *y) *output += Bytes(t.bytes());
    });
  }
  Bytes Recompute(int mb) {
    return Peak([&] { CHECK(stage_->Recompute(MakeAction(ActionKind::kRecompute, 0, mb)).ok()); });
  }
  Bytes Backward(int mb, ActionKind kind) {
    std::vector<Tensor> dy;
    for (int e = 0; e < num_outputs_; ++e) dy.push_back(Arrive(stage_->OutputSpec(e, 0)));
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
  Tensor Arrive(const TensorSpec& spec) { return RandomTensor(backend_.get(), spec.shape, "x", 1); }
  Bytes Peak(const std::function<void()>& pass) {
    const Bytes before = arena_.current_transient();
    arena_.ResetPeaks();
    pass();
    return arena_.peak_transient() - before;
  }

  RandomTokens data_;
  int num_inputs_, num_outputs_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LayerStage> stage_;
};

void CheckStage(const ModelGraph& graph, const ModelPartition& partition, int number,
                int64_t samples) {
  SCOPED_TRACE(testing::Message() << "stage " << number << " of the layers "
                                  << testing::PrintToString(partition.layers[number]));
  const StageMemory memory = ComputeStageMemory(graph, partition, number, samples);
  Bytes input, outputs;
  const auto edge_bytes = [&](int edge) {
    return graph.layers[partition.edge_layer[edge]].costs(samples).output;
  };
  for (int e : partition.stages.in_edges[number]) input += edge_bytes(e);
  for (int e : partition.stages.out_edges[number]) outputs += edge_bytes(e);
  MeasuredStage stage(graph, partition, number, samples);
  EXPECT_EQ(stage.state().value(), memory.state.value());
  Bytes output;
  // Two micro-batches in flight: fused and split.
  EXPECT_EQ(stage.Forward(0, false, &output).value(), memory.forward_peak.value());
  EXPECT_EQ(output.value(), outputs.value());
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
            SCOPED_TRACE(testing::Message() << "tokens " << tokens << ", dropout " << dropout
                                            << (tied ? ", tied" : ""));
            int stage = 0;
            const ModelPartition partition = *MakeStageOfRange(graph, begin, end, &stage);
            CheckStage(graph, partition, stage, /*samples=*/3);
          }
        }
      }
    }
  }
}

TEST(StageMemory, OfGraphsHoldsToTheByte) {
  for (int seed = 0; seed < 16; ++seed) {
    const ModelGraph graph = RandomGraph(8 + seed, seed, /*dropout=*/seed % 2 == 0 ? 0 : 0.1);
    for (int most_stages : {1, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", at most " << most_stages);
      const ModelPartition partition =
          *MakePartition(graph, RandomStages(graph, most_stages, seed));
      for (int stage = 0; stage < partition.num_stages(); ++stage) {
        CheckStage(graph, partition, stage, /*samples=*/2);
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
