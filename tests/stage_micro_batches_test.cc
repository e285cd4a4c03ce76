// A real GPT on stages with micro-batches of different size: trains as a plain loop over the stages
// does, to the bit; as serial training does, within rounding; and in the memory that is predicted.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/comparison.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kStageSteps = 4;

// No schedule, messages or micro-batches in flight: each stage takes the whole batch, one of its
// micro-batches after the other, and then the next stage does.
class StageLoop {
 public:
  StageLoop(const ModelGraph& graph, const ModelPartition& partition, const BatchSource& data,
            int micro_batches, const std::vector<int32_t>& counts, uint64_t seed)
      : partition_(partition), counts_(counts), on_edge_(partition.stages.edges.size()) {
    tokens_ = micro_batches * kSmallSamples * data.targets_per_sample();
    for (int s = 0; s < partition.num_stages(); ++s) {
      LayerStageOptions options;
      options.micro_batch_size = kSmallSamples * micro_batches / counts[s];
      options.data = &data;
      options.seed = seed;
      options.optimizer = SmallAdam();
      options.batch_tokens = tokens_;
      stages_.push_back(LayerStage::Create(graph, partition, s, backend_.get(), options).value());
    }
  }

  double Step() {
    for (int s = 0; s < partition_.num_stages(); ++s) {
      Pass(s, ActionKind::kForward, partition_.stages.in_edges[s], partition_.stages.out_edges[s]);
    }
    for (int s = partition_.num_stages() - 1; s >= 0; --s) {
      Pass(s, ActionKind::kBackward, partition_.stages.out_edges[s], partition_.stages.in_edges[s]);
    }
    double loss = 0;
    for (const auto& stage : stages_) {
      for (const auto& [micro_batch, sum] : stage->losses()) loss += sum;
      CHECK(stage->Step(ActionOf(ActionKind::kStep, 0, 0)).ok());
    }
    return loss / static_cast<double>(tokens_);
  }

 private:
  static Action ActionOf(ActionKind kind, int stage, int micro_batch) {
    Action a;
    a.kind = kind;
    a.stage = static_cast<int16_t>(stage);
    a.micro_batch = micro_batch;
    return a;
  }

  void Pass(int s, ActionKind kind, const std::vector<int>& in, const std::vector<int>& out) {
    std::vector<std::vector<Tensor>> parts(out.size());
    for (int m = 0; m < counts_[s]; ++m) {
      std::vector<Tensor> inputs;
      for (int e : in) {
        const int64_t rows = on_edge_[e].shape()[0] / counts_[s];
        inputs.push_back(Joined({on_edge_[e].Rows(m * rows, (m + 1) * rows)}));
      }
      auto outputs = kind == ActionKind::kForward
                         ? stages_[s]->Forward(ActionOf(kind, s, m), std::move(inputs), false)
                         : stages_[s]->Backward(ActionOf(kind, s, m), std::move(inputs));
      CHECK(outputs.ok()) << outputs.status();
      for (size_t i = 0; i < out.size(); ++i) parts[i].push_back((*outputs)[i]);
    }
    for (int e : in) on_edge_[e] = Tensor();
    for (size_t i = 0; i < out.size(); ++i) on_edge_[out[i]] = Joined(parts[i]);
  }

  Tensor Joined(const std::vector<Tensor>& parts) {
    Shape shape = parts[0].shape();
    shape[0] *= static_cast<int64_t>(parts.size());
    Tensor whole = arena_.Allocate(parts[0].type(), shape, MemoryKind::kActivation);
    char* to = static_cast<char*>(whole.data());
    for (const Tensor& part : parts) {
      std::memcpy(to, part.data(), part.bytes());
      to += part.bytes();
    }
    return whole;
  }

  const ModelPartition partition_;
  const std::vector<int32_t> counts_;
  int64_t tokens_ = 0;
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
  std::vector<Tensor> on_edge_;  // the whole batch
  std::vector<std::unique_ptr<LayerStage>> stages_;
};

TEST(StageMicroBatches, TrainAsALoopOverStages) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches = SmallText();
  const std::vector<double> serial = SerialLosses(graph, SmallSerial(*batches, 8), kStageSteps);
  for (const std::vector<int32_t>& counts :
       {std::vector<int32_t>{8, 4, 4, 8}, {1, 2, 4, 8}, {8, 4, 2, 1}, {2, 8, 1, 4}, {8, 8, 8, 8}}) {
    for (bool recompute : {false, true}) {
      for (bool rendezvous : {false, true}) {
        TrainingOptions options = SmallTraining("graph", 4, 8);
        SchemeParams sizes{4, 8};
        sizes.micro_batches_of_stage = counts;
        sizes.recompute = recompute;
        PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", sizes));
        options.rendezvous = rendezvous;
        PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                     PipelineTraining::Create(graph, *batches, options));
        StageLoop loop(graph, training->partition(), *batches, 8, counts, options.seed);
        SchemeResult result;
        result.config = options.config;
        result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
        EXPECT_EQ(result.must_be_bit_equal, counts[1] == 8 && counts[0] == 8);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                     Simulate(training->program(), training->costs()));
        TrainingStep step;
        for (int i = 0; i < kStageSteps; ++i) {
          PIPELAB_ASSERT_OK_AND_ASSIGN(step, training->Step());
          result.losses.push_back(step.loss);
          EXPECT_EQ(step.loss, loop.Step()) << "counts of stage 1: " << counts[1] << ", step " << i;
        }
        const Equality equality = CompareLosses(result, serial);
        EXPECT_TRUE(equality.ok) << equality.text;
        for (size_t d = 0; d < predicted.devices.size(); ++d) {
          const Bytes p = predicted.devices[d].peak_activation;
          const Bytes m = step.trace.devices[d].peak_activation;
          EXPECT_EQ(p, m) << "device " << d;
          EXPECT_EQ(predicted.devices[d].bytes_sent, step.trace.devices[d].bytes_sent);
          EXPECT_EQ(predicted.devices[d].peak_state, step.trace.devices[d].peak_state);
        }
      }
    }
  }
}

// Groups of devices on top: rows of a micro-batch are cut between members and between sizes.
TEST(StageMicroBatches, WithGroupsTrainAsSerial) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const std::unique_ptr<BatchSource> batches = SmallText();
  const std::vector<double> serial = SerialLosses(graph, SmallSerial(*batches, 8), kStageSteps);
  TrainingOptions options = SmallTraining("graph", 5, 8);
  SchemeParams sizes{5, 8};
  sizes.devices_of_stage = {{0}, {1, 2}, {3, 4}};
  sizes.micro_batches_of_stage = {8, 2, 8};
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", sizes));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, *batches, options));
  SchemeResult result;
  result.config = options.config;
  for (int i = 0; i < kStageSteps; ++i) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
    result.losses.push_back(step.loss);
  }
  const Equality equality = CompareLosses(result, serial);
  EXPECT_TRUE(equality.ok) << equality.text;
}

}  // namespace
}  // namespace pipelab
