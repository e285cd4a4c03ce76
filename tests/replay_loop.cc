#include "tests/replay_loop.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/comm/transport.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/layer_stage.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class ReplayLoop {
 public:
  ReplayLoop(const PipelineTraining& training, const BatchSource& data,
             const TrainingOptions& options, int every)
      : schedule_(training.program().schedule),
        partition_(training.partition()),
        targets_(data.targets_per_sample()),
        every_(every) {
    for (int s = 0; s < partition_.num_stages(); ++s) {
      LayerStageOptions o;
      o.micro_batch_size = kSmallSamples;
      o.data = &data;
      o.seed = options.seed;
      o.optimizer = options.optimizer;
      const int passes = schedule_.MicroBatches(s), update = every_ > 0 ? every_ : passes;
      o.batch_tokens = update * kSmallSamples * targets_;
      if (every_ > 0) {  // a forward and a backward of each
        o.version_uses.assign(passes / update, 2 * update);
        o.version_uses.push_back(0);
      }
      stages_.push_back(
          LayerStage::Create(training.graph(), partition_, s, backend_.get(), o).value());
    }
  }

  double Step() {
    std::vector<Output> before, made;
    double loss = 0;
    for (int s = 0; s < partition_.num_stages(); ++s, before = std::move(made)) {
      loss = 0;
      made.clear();
      for (int m = 0; m < schedule_.MicroBatches(s); ++m) {
        Output in;
        in.sample = m;
        if (s > 0) in = before[schedule_.Outputs(schedule_.stages.edges[s - 1]).Sources(m).first];
        made.push_back(Pass(s, m, in, &loss));
      }
    }
    return loss / static_cast<double>(before.size() * kSmallSamples * targets_);
  }

  std::vector<float> Value(const std::string& name) const {
    for (const auto& stage : stages_) {
      auto value = stage->parameters().Copy(name, StateKind::kValue);
      if (value.ok()) return *std::move(value);
    }
    return {};
  }

 private:
  struct Output {
    int sample = 0;
    std::vector<Tensor> tensors;  // of the edges to the next stage
  };

  // The stage knows the micro-batch by its sample: one is in flight at a time.
  Output Pass(int s, int m, const Output& in, double* loss) {
    LayerStage& stage = *stages_[s];
    Action a;
    a.stage = static_cast<int16_t>(s);
    a.micro_batch = in.sample;
    a.version = static_cast<int16_t>(every_ > 0 ? m / every_ : 0);
    Output out;
    out.sample = in.sample;
    out.tensors = stage.Forward(a, in.tensors, /*drop=*/false).value();
    if (!stage.losses().empty()) *loss += stage.losses().at(in.sample);
    a.kind = ActionKind::kBackward;
    CHECK(stage.Backward(a, std::vector<Tensor>(out.tensors.size())).ok());
    if ((m + 1) % (every_ > 0 ? every_ : schedule_.MicroBatches(s)) != 0) return out;
    a.kind = ActionKind::kStep;
    a.micro_batch = 0;
    if (every_ > 0) ++a.version;
    CHECK(stage.Step(a).ok());
    return out;
  }

  const Schedule& schedule_;
  const ModelPartition& partition_;
  const int64_t targets_;
  const int every_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
  std::vector<std::unique_ptr<LayerStage>> stages_;
};

}  // namespace

TrainingOptions SmallReplay(const SchemeParams& sizes) {
  TrainingOptions options = SmallTraining("local_replay", sizes.devices, sizes.micro_batches);
  options.schedule = MakeSchedule("local_replay", sizes).value();
  return options;
}

void ExpectAsReplayLoop(const ModelGraph& graph, const BatchSource& data,
                        const TrainingOptions& options, int every, int steps) {
  SCOPED_TRACE(
      testing::Message() << "passes "
                         << testing::PrintToString(options.schedule->micro_batches_of_stage)
                         << ", a step every " << every);
  const bool first = options.transport == nullptr || options.transport->processes()->rank() == 0;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto training, PipelineTraining::Create(graph, data, options));
  ReplayLoop loop(*training, data, options, every);
  const std::vector<double> losses = LossesAsPredicted(training.get(), steps, first);
  ASSERT_EQ(losses.size(), static_cast<size_t>(steps));
  for (double loss : losses) EXPECT_EQ(loss, loop.Step());
  for (const LayerSpec& layer : training->graph().layers) {
    for (const ParameterSpec& p : layer.parameters) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> value,
                                   training->ParameterValue(p.name));
      EXPECT_TRUE(!first || value == loop.Value(p.name)) << p.name;
    }
  }
}

}  // namespace pipelab
