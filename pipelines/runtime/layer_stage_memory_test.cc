// Stage costs against arenas: what the planner says that a stage holds is what it holds, to the
// byte.
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/test_graphs.h"
#include "models/layers/test_layers.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/runtime/host_copier.h"
#include "pipelines/runtime/layer_stage.h"
#include "tests/support/layer_pipeline.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// A stage alone on an arena, its neighbours played by random tensors.
class MeasuredStage {
 public:
  MeasuredStage(const ModelGraph& graph, const ModelPartition& partition, int stage,
                int64_t samples, std::vector<int64_t> slices = {})
      : data_(graph.layers[0].data[0].shape[0], 11),
        num_inputs_(static_cast<int>(partition.stages.in_edges[stage].size())),
        num_outputs_(static_cast<int>(partition.stages.out_edges[stage].size())),
        backend_(MakeCpuBackend(&arena_)) {
    LayerStageOptions o;
    o.micro_batch_size = samples;
    o.data = &data_;
    o.batch_tokens = 100;
    o.slices = std::move(slices);
    auto made = LayerStage::Create(graph, partition, stage, backend_.get(), o);
    CHECK(made.ok()) << made.status();
    stage_ = *std::move(made);
  }

  Bytes state() const { return arena_.peak_state(); }
  Bytes held() const { return arena_.current_transient(); }
  // Passes are of this token slice from here on.
  void set_slice(int slice) { slice_ = slice; }

  // A forward's peak and outputs; the outputs go to their consumers.
  Bytes Forward(int mb, bool drop, Bytes* output) {
    std::vector<Tensor> x;
    for (int e = 0; e < num_inputs_; ++e) x.push_back(Arrive(stage_->InputSpec(e, slice_)));
    *output = Bytes(0);
    return Peak([&] {
      auto y = stage_->Forward(Of(ActionKind::kForward, mb), std::move(x), drop);
      CHECK(y.ok()) << y.status();
      for (const Tensor& t : *y) *output += Bytes(t.bytes());
    });
  }
  // What its forward keeps goes to the host and comes back; what the host has in between.
  Bytes ToHostAndBack(int mb, Bytes* left) {
    HostCopier copier(&arena_, BytesPerSecond(0));
    const auto move = [&](ActionKind kind, int32_t copy) {
      auto kept = stage_->Kept(Of(kind, mb));
      CHECK(kept.ok()) << kept.status();
      const absl::Status begun = copier.Begin(kind == ActionKind::kReload, *std::move(kept));
      CHECK(begun.ok()) << begun;
      copier.Wait(copy);
    };
    move(ActionKind::kOffload, 0);
    *left = held();
    move(ActionKind::kReload, 1);
    return copier.peak_host();
  }
  Bytes Recompute(int mb) {
    return Peak([&] { CHECK(stage_->Recompute(Of(ActionKind::kRecompute, mb)).ok()); });
  }
  Bytes Backward(int mb, ActionKind kind) {
    std::vector<Tensor> dy;
    for (int e = 0; e < num_outputs_; ++e) dy.push_back(Arrive(stage_->OutputSpec(e, slice_)));
    return Peak([&] {
      auto dx = stage_->Backward(Of(kind, mb), std::move(dy));
      CHECK(dx.ok()) << dx.status();
    });
  }
  Bytes Weights(int mb) {
    return Peak([&] { CHECK(stage_->BackwardWeight(Of(ActionKind::kBackwardWeight, mb)).ok()); });
  }

 private:
  Action Of(ActionKind kind, int mb) const {
    Action a = MakeAction(kind, 0, mb);
    a.slice = static_cast<int16_t>(slice_);
    return a;
  }
  Tensor Arrive(const TensorSpec& spec) { return RandomTensor(backend_.get(), spec.shape, "x", 1); }
  Bytes Peak(const std::function<void()>& pass) {
    const Bytes before = arena_.current_transient();
    arena_.ResetPeaks();
    pass();
    return arena_.peak_transient() - before;
  }

  RandomTokens data_;
  int num_inputs_, num_outputs_, slice_ = 0;
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
  Bytes left;
  EXPECT_EQ(stage.ToHostAndBack(0, &left).value(), (input + memory.kept).value());
  EXPECT_EQ(left.value(), (input + memory.kept).value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value() * 2);
  EXPECT_EQ(stage.Backward(0, ActionKind::kBackward).value(), memory.backward_peak.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value());
  EXPECT_EQ(stage.Backward(1, ActionKind::kBackwardInput).value(),
            memory.backward_input_peak.value());
  EXPECT_EQ(stage.held().value(), memory.kept_for_weight.value());
  EXPECT_EQ(stage.Weights(1).value(), memory.backward_weight_peak.value());
  EXPECT_EQ(stage.held().value(), 0);
  if (!partition.block_of_layer.empty()) return;
  // Recompute.
  EXPECT_EQ(stage.Forward(2, true, &output).value(), memory.forward_drop_peak.value());
  EXPECT_EQ(stage.held().value(), input.value());
  EXPECT_EQ(stage.Recompute(2).value(), memory.recompute_peak.value());
  EXPECT_EQ(stage.held().value(), (input + memory.kept).value());
  EXPECT_EQ(stage.Backward(2, ActionKind::kBackward).value(), memory.backward_peak.value());
  EXPECT_EQ(stage.held().value(), 0);
}

// One micro-batch in token slices: all forwards, then the backwards from the last to the first, of
// which every other one is split, then what is left of these.
void CheckSlices(const ModelGraph& graph, const ModelPartition& partition, int number,
                 const std::vector<int64_t>& lengths, bool drop) {
  constexpr int64_t kSamples = 3;
  SCOPED_TRACE(testing::Message() << "layers " << testing::PrintToString(partition.layers[number])
                                  << ", slices " << testing::PrintToString(lengths)
                                  << (drop ? ", recomputed" : ""));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<TokenSlice> slices,
                               MakeTokenSlices(lengths, graph.layers[0].output_shape[0]));
  MeasuredStage stage(graph, partition, number, kSamples, lengths);
  const int n = static_cast<int>(slices.size());
  std::vector<StageMemory> memory;
  std::vector<Bytes> inputs(n);
  Bytes level, output;
  for (int k = 0; k < n; ++k) {
    memory.push_back(ComputeStageMemory(graph, partition, number, kSamples, slices[k]));
    for (int e : partition.stages.in_edges[number]) {
      inputs[k] += CostsOf(graph.layers[partition.edge_layer[e]], kSamples, slices[k]).output;
    }
    stage.set_slice(k);
    EXPECT_EQ(stage.Forward(0, drop, &output).value(),
              (drop ? memory[k].forward_drop_peak : memory[k].forward_peak).value());
    level += inputs[k] + (drop ? memory[k].kept_when_dropped : memory[k].kept);
    EXPECT_EQ(stage.held().value(), level.value());
    if (drop) continue;
    Bytes left;  // what later slices read stays
    const Bytes moved = inputs[k] + memory[k].kept - memory[k].kept_when_dropped;
    EXPECT_EQ(stage.ToHostAndBack(0, &left).value(), moved.value());
    EXPECT_EQ(left.value(), (level - moved).value());
    EXPECT_EQ(stage.held().value(), level.value());
  }
  for (int k = n; k-- > 0;) {
    const StageMemory& m = memory[k];
    stage.set_slice(k);
    if (drop) {
      EXPECT_EQ(stage.Recompute(0).value(), m.recompute_peak.value());
      level += m.kept - m.kept_when_dropped;
      EXPECT_EQ(stage.held().value(), level.value());
    }
    const bool split = k % 2 == 0;
    EXPECT_EQ(stage.Backward(0, split ? ActionKind::kBackwardInput : ActionKind::kBackward).value(),
              (split ? m.backward_input_peak : m.backward_peak).value());
    level += m.carried - m.kept - inputs[k];
    if (split) level += m.kept_for_weight;
    EXPECT_EQ(stage.held().value(), level.value());
  }
  for (int k = 0; k < n; k += 2) {
    stage.set_slice(k);
    EXPECT_EQ(stage.Weights(0).value(), memory[k].backward_weight_peak.value());
    level -= memory[k].kept_for_weight;
    EXPECT_EQ(stage.held().value(), level.value());
  }
  EXPECT_EQ(stage.held().value(), 0);
}

TEST(StageMemory, OfSlicesHoldsToTheByte) {
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{4, 2}, {1, 2, 3}, {64, 6}, {10, 40, 20}}) {
    for (double dropout : {0.0, 0.1}) {
      GptConfig config = SmallGpt(dropout, /*tied=*/false);
      config.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
      const ModelGraph graph = *BuildGpt(config);
      for (int begin = 0; begin < 6; ++begin) {
        for (int end = begin + 1; end <= 6; ++end) {
          int stage = 0;
          const ModelPartition partition = *MakeStageOfRange(graph, begin, end, &stage);
          for (bool drop : {false, true}) CheckSlices(graph, partition, stage, lengths, drop);
        }
      }
    }
  }
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

// Rebuilt block by block, of one layer or several each, some of which keep what they have.
TEST(StageMemory, OfRebuiltBlocksHoldsToTheByte) {
  for (int seed = 0; seed < 24; ++seed) {
    const ModelGraph graph = RandomGraph(8 + seed, seed, /*dropout=*/seed % 2 == 0 ? 0 : 0.1);
    for (int most_stages : {1, 2, 4}) {
      for (int layers_of_block : {1, 2, 3, 50}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", at most " << most_stages
                                        << ", blocks of " << layers_of_block);
        ModelPartition partition = *MakePartition(graph, RandomStages(graph, most_stages, seed));
        for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
          const int block = i / layers_of_block;
          partition.block_of_layer.push_back((block + seed) % 4 == 0 ? -1 : block);
        }
        for (int stage = 0; stage < partition.num_stages(); ++stage) {
          CheckStage(graph, partition, stage, /*samples=*/2);
        }
      }
    }
  }
}

// Twelve blocks, of which a stage then holds the inputs and one at a time.
TEST(StageMemory, OfOneRebuiltBlockAtATime) {
  GptConfig config = SmallGpt(/*dropout=*/0.1, /*tied=*/false);
  config.layers = 12;
  const ModelGraph graph = *BuildGpt(config);
  int stage = 0;
  ModelPartition partition = *MakeStageOfRange(graph, 1, 25, &stage);
  const StageMemory all = ComputeStageMemory(graph, partition, stage, /*samples=*/3);
  std::vector<int> blocks(graph.layers.size());
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int>(i + 1) / 2;
  partition.block_of_layer = RebuiltBlocks(graph, blocks);
  EXPECT_EQ(partition.block_of_layer[0], -1);
  EXPECT_EQ(partition.block_of_layer[25], -1);
  CheckStage(graph, partition, stage, /*samples=*/3);
  const StageMemory rebuilt = ComputeStageMemory(graph, partition, stage, /*samples=*/3);
  const Bytes input = graph.layers[2].costs(3).output;
  EXPECT_EQ(rebuilt.kept, 11 * input);  // the first block's comes from the stage before
  EXPECT_LT(4 * (rebuilt.backward_peak + rebuilt.kept), all.recompute_peak + all.backward_peak);
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
