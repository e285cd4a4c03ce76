// Every optimizer, with a learning-rate schedule and with gradients clipped by their global norm,
// trains under every kind of scheme as the serial loop does: the same bits where gradients come in
// micro-batch order on one device, those of a loop that sums by replica where replicas do, and
// within the derived tolerance elsewhere. State and traffic are as predicted, to the byte.
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/comparison.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/mmt.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kOptimizerSteps = 8;

struct NamedOptimizer {
  std::string name;
  OptimizerOptions options;
};

void PrintTo(const NamedOptimizer& optimizer, std::ostream* os) { *os << optimizer.name; }

// Every kind, every number of state tensors, every decay, with and without clipping. The norms of
// the small GPT's gradients are about 1 to 3.
std::vector<NamedOptimizer> Optimizers() {
  std::vector<NamedOptimizer> optimizers;
  const auto add = [&](const char* name, OptimizerOptions options, LearningRateSchedule schedule,
                       double clip_norm) {
    options.schedule = schedule;
    options.clip_norm = clip_norm;
    optimizers.push_back({name, options});
  };
  AdamOptions adam;
  adam.learning_rate = 3e-3f;
  adam.weight_decay = 0.01f;
  add("Adam", OptimizerOptions::Adam(adam), {3, RateDecay::kInverseSqrt, 0}, 0);
  add("AdamClipped", OptimizerOptions::Adam(adam), {2, RateDecay::kConstant, 0}, 0.25);
  SgdOptions sgd;
  sgd.learning_rate = 0.05f;
  add("Sgd", OptimizerOptions::Sgd(sgd), {0, RateDecay::kCosine, kOptimizerSteps}, 0);
  add("SgdClipped", OptimizerOptions::Sgd(sgd), {}, 0.5);
  sgd.momentum = 0.9f;
  sgd.nesterov = true;
  add("Nesterov", OptimizerOptions::Sgd(sgd), {2, RateDecay::kCosine, kOptimizerSteps}, 0.5);
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 2e-3f;
  add("RmsProp", OptimizerOptions::RmsProp(rmsprop), {}, 0);
  rmsprop.momentum = 0.5f;
  rmsprop.weight_decay = 1e-3f;
  rmsprop.epsilon = 0.01f;
  rmsprop.epsilon_inside_root = true;
  add("RmsPropClipped", OptimizerOptions::RmsProp(rmsprop), {4, RateDecay::kConstant, 0}, 0.25);
  return optimizers;
}

struct OptimizerResult {
  std::vector<double> losses, norms;
  std::vector<std::vector<float>> parameters;  // in graph order
};

// `Value` gives a parameter by name.
template <typename ValueOf>
void TakeParameters(const ModelGraph& graph, const ValueOf& value_of, OptimizerResult* result) {
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      auto value = value_of(p.name);
      ASSERT_THAT(value, IsOk());
      result->parameters.push_back(*std::move(value));
    }
  }
}

class OptimizerTest : public testing::TestWithParam<NamedOptimizer> {
 protected:
  const OptimizerOptions& optimizer() const { return GetParam().options; }

  TrainingOptions Options(const std::string& scheme, int devices, int micro_batches) const {
    TrainingOptions options = SmallTraining(scheme, devices, micro_batches);
    options.optimizer = optimizer();
    options.config.recompute = RecomputeIf(scheme == "gpipe");
    return options;
  }

  OptimizerResult Serial(const ModelGraph& graph, const TrainingOptions& o,
                         std::vector<int> sum_of_micro_batch = {}) {
    SerialOptions options = SmallSerial(*batches_, o.config.micro_batches);
    options.micro_batch_size = o.samples();
    options.optimizer = o.optimizer;
    options.sum_of_micro_batch = std::move(sum_of_micro_batch);
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    auto trainer = SerialTrainer::Create(graph, backend.get(), options).value();
    OptimizerResult result;
    for (int step = 0; step < kOptimizerSteps; ++step) {
      result.losses.push_back(trainer->Step().value());
      result.norms.push_back(trainer->gradient_norm());
    }
    TakeParameters(
        graph, [&](const std::string& name) { return trainer->ParameterValue(name); }, &result);
    return result;
  }

  // Compares every step's state and traffic with the simulator's.
  OptimizerResult Train(const ModelGraph& graph, const TrainingOptions& options,
                        Schedule* schedule = nullptr) {
    OptimizerResult result;
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return result;
    const Program& program = (*training)->program();
    if (schedule != nullptr) *schedule = program.schedule;
    const auto predicted = Simulate(program, (*training)->costs());
    EXPECT_THAT(predicted, IsOk());
    if (!predicted.ok()) return result;
    for (int step = 0; step < kOptimizerSteps; ++step) {
      const absl::StatusOr<TrainingStep> done = (*training)->Step();
      EXPECT_THAT(done, IsOk());
      if (!done.ok()) return result;
      result.losses.push_back(done->loss);
      result.norms.push_back(done->gradient_norm);
      ExpectStateAndTraffic(*predicted, done->trace);
    }
    TakeParameters(
        graph, [&](const std::string& name) { return (*training)->ParameterValue(name); }, &result);
    return result;
  }

  void ExpectSameBits(const OptimizerResult& a, const OptimizerResult& b) {
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.norms, b.norms);
    EXPECT_EQ(a.parameters, b.parameters);
  }

  // Norms are sums of the same terms in another order, as losses are: their tolerance is theirs, as
  // a share.
  void ExpectWithinTolerance(const OptimizerResult& result, const TrainingOptions& options,
                             const OptimizerResult& serial) {
    SchemeResult scheme;
    scheme.config = options.config;
    scheme.config.micro_batches *= options.config.data;
    scheme.losses = result.losses;
    const Equality equality = CompareLosses(scheme, serial.losses);
    EXPECT_TRUE(equality.ok) << equality.text;
    const double share = LossTolerance(kOptimizerSteps, scheme.config.micro_batches, 1.0);
    for (size_t i = 0; i < serial.norms.size(); ++i) {
      EXPECT_NEAR(result.norms[i], serial.norms[i], share * serial.norms[i]) << "step " << i + 1;
    }
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
};

TEST_P(OptimizerTest, SerialTrainingLearnsAndClips) {
  const OptimizerResult serial = Serial(SmallGpt(/*tied=*/false), Options("gpipe", 1, 4));
  EXPECT_LT(serial.losses.back(), serial.losses.front());
  for (double norm : serial.norms) {
    if (optimizer().needs_norm()) {
      EXPECT_GT(norm, optimizer().clip_norm) << "the test must clip something";
    } else {
      EXPECT_EQ(norm, 0);
    }
  }
}

TEST_P(OptimizerTest, SchemesInMicroBatchOrderHaveTheSerialBits) {
  for (bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    const OptimizerResult serial = Serial(graph, Options("gpipe", 1, 4));
    for (const char* scheme : {"gpipe", "1f1b", "breadth_first", "zb_h1", "zbv", "interleaved"}) {
      for (int devices : {1, 2, 4}) {
        TrainingOptions options = Options(scheme, devices, 4);
        if (!Serves(options.config)) continue;
        SCOPED_TRACE(testing::Message() << scheme << " on " << devices << ", tied=" << tied);
        options.rendezvous = devices == 2;
        options.config.overlap_data = devices == 2;
        Schedule schedule;
        const OptimizerResult result = Train(graph, options, &schedule);
        EXPECT_TRUE(KeepsMicroBatchOrder(schedule));
        ExpectSameBits(result, serial);
      }
    }
  }
}

TEST_P(OptimizerTest, ReplicasHaveTheBitsOfALoopThatSumsByReplica) {
  for (bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    for (const char* scheme : {"chimera", "dualpipe"}) {
      SCOPED_TRACE(testing::Message() << scheme << " tied=" << tied);
      TrainingOptions options = Options(scheme, 4, 8);
      Schedule schedule;
      const OptimizerResult result = Train(graph, options, &schedule);
      ASSERT_EQ(schedule.placement.num_replicas(), 2);
      if (tied) {  // its four copies are summed at once
        ExpectWithinTolerance(result, options, Serial(graph, options));
      } else {
        ExpectSameBits(result, Serial(graph, options, schedule.placement.replica_of_micro_batch));
      }
    }
  }
}

TEST_P(OptimizerTest, GroupsAndShardsTrainAsWholeParameters) {
  for (bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    for (const char* scheme : {"1f1b", "breadth_first"}) {
      TrainingOptions options = Options(scheme, 2, 4);
      options.config.data = 2;
      options.config.micro_batch_size = kSmallSamples / 2;
      const OptimizerResult serial = Serial(graph, options);
      const OptimizerResult whole = Train(graph, options);
      ExpectWithinTolerance(whole, options, serial);
      for (Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
        SCOPED_TRACE(testing::Message()
                     << scheme << " " << ShardingName(sharding) << " tied=" << tied);
        options.config.sharding = sharding;
        const OptimizerResult parts = Train(graph, options);
        if (optimizer().needs_norm()) {  // sums of squares come in parts
          ExpectWithinTolerance(parts, options, serial);
          ExpectWithinTolerance(parts, options, whole);
        } else {
          ExpectSameBits(parts, whole);
        }
      }
    }
  }
}

// Branches as parallel stages: the schedule's stages are a graph.
TEST_P(OptimizerTest, BranchesHaveTheSerialBits) {
  MmtConfig config;
  config.branches = 2;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = kSmallTokens;
  config.feed_forward = 24;
  config.vocabulary = SmallText()->vocabulary();
  const ModelGraph graph = *BuildMmt(config);
  TrainingOptions options = Options("graph", /*devices=*/5, /*micro_batches=*/4);
  options.config.layout = StagesText(*MmtParallelStages(config, /*stages_of_branch=*/2));
  ExpectSameBits(Train(graph, options), Serial(graph, options));
}

// Half of the steps under one scheme, and from the state that it leaves the rest under another.
TEST_P(OptimizerTest, GoesOnFromASavedState) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  TrainingOptions options = Options("1f1b", 2, 4);
  const OptimizerResult serial = Serial(graph, options);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first, PipelineTraining::Create(graph, *batches_, options));
  std::vector<double> losses;
  for (int step = 0; step < kOptimizerSteps / 2; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, first->Step());
    losses.push_back(done.loss);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  EXPECT_EQ(state.optimizer, OptimizerKindName(optimizer().kind));
  options = Options("breadth_first", 4, 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto second, PipelineTraining::Create(graph, *batches_, options));
  ASSERT_THAT(second->SetState(state), IsOk());
  for (int step = kOptimizerSteps / 2; step < kOptimizerSteps; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, second->Step());
    losses.push_back(done.loss);
  }
  EXPECT_EQ(losses, serial.losses);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, testing::ValuesIn(Optimizers()),
                         [](const testing::TestParamInfo<NamedOptimizer>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace pipelab
