// Training that is written to a file and goes on elsewhere: at another number of stages, under
// another scheme, in the serial loop, with other shards. It has the bits of training that was never
// interrupted.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/checkpoint/training_state.h"
#include "models/layers/optimizer.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "models/zoo/branch_stages.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kCheckpointMicroBatches = 8;
constexpr int kStepsOfALeg = 2;

struct CheckpointCase {
  std::string name;
  ModelGraph graph;
  std::vector<int> parallel_stages;  // of GraphPipe; empty: no branches
};

std::vector<CheckpointCase> CheckpointCases() {
  std::vector<CheckpointCase> cases = {{"gpt", SmallGpt(/*tied=*/false), {}},
                                       {"gpt_tied", SmallGpt(/*tied=*/true), {}}};
  for (ModelGraph& graph : SmallNets(/*dropout=*/0.1, Activation::kRelu)) {
    auto parallel = BranchStages(graph, /*stages_of_branch=*/1);
    std::vector<int> stages = parallel.ok() ? *std::move(parallel) : std::vector<int>();
    cases.push_back({graph.name, std::move(graph), std::move(stages)});
  }
  for (GroupedModel (*build)() : {SmallAmoebaNet, SmallResNet}) {
    GroupedModel model = build();
    cases.push_back({model.graph.name, std::move(model.graph), {}});
  }
  return cases;
}

// The losses of some steps and the state after them.
struct Leg {
  std::vector<double> losses;
  TrainingState state;
};

class Checkpoint : public testing::Test {
 protected:
  // Goes on from `state`, or begins where that is null, and takes the state through a file's bytes.
  template <typename Training, typename LossOf>
  Leg Run(Training* training, const TrainingState* state, int steps, LossOf loss_of) {
    Leg leg;
    if (state != nullptr) {
      EXPECT_THAT(training->SetState(*state), IsOk());
    }
    for (int i = 0; i < steps; ++i) leg.losses.push_back(loss_of(training));
    const absl::StatusOr<TrainingState> reached = training->State();
    EXPECT_THAT(reached, IsOk());
    absl::StatusOr<TrainingState> read =
        ParseTrainingState(SerializeTrainingState(*reached), "leg.safetensors");
    EXPECT_THAT(read, IsOk());
    leg.state = *std::move(read);
    return leg;
  }

  // SerialTrainer::State() needs no Status.
  struct Serial {
    std::unique_ptr<SerialTrainer> trainer;
    absl::Status SetState(const TrainingState& state) { return trainer->SetState(state); }
    absl::StatusOr<TrainingState> State() const { return trainer->State(); }
  };

  Leg Serially(const ModelGraph& graph, const BatchSource& data, const TrainingState* state,
               int steps, const OptimizerOptions& optimizer = SmallAdam()) {
    SerialOptions options;
    options.num_micro_batches = kCheckpointMicroBatches;
    options.micro_batch_size = kSmallSamples;
    options.data = &data;
    options.optimizer = optimizer;
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    auto trainer = SerialTrainer::Create(graph, backend.get(), options);
    EXPECT_THAT(trainer, IsOk());
    Serial serial{*std::move(trainer)};
    return Run(&serial, state, steps, [](Serial* s) { return s->trainer->Step().value(); });
  }

  Leg Piped(const ModelGraph& graph, const BatchSource& data, const TrainingOptions& options,
            const TrainingState* state, int steps = kStepsOfALeg) {
    auto training = PipelineTraining::Create(graph, data, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return Leg();
    return Run(training->get(), state, steps,
               [](PipelineTraining* t) { return t->Step().value().loss; });
  }

  static void ExpectSameState(const TrainingState& a, const TrainingState& b) {
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.optimizer_steps, b.optimizer_steps);
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (const auto& [key, tensor] : a.tensors) {
      EXPECT_TRUE(tensor.values == b.tensors.at(key).values) << key;
    }
  }
};

// From leg to leg through 1, 2 and 4 devices, up to 8 stages, every kind of schedule, and back.
TEST_F(Checkpoint, GoesOnAtAnyNumberOfStagesAndUnderAnyScheme) {
  struct Place {
    std::string scheme;
    int devices;
    bool recompute;
  };
  const std::vector<Place> places = {
      {"gpipe", 1, true}, {"1f1b", 2, false}, {"breadth_first", 2, false}, {"zb_h1", 4, false},
      {"gpipe", 4, true}, {"1f1b", 3, true},  {"interleaved", 2, false}};
  int graphs = 0;
  for (const CheckpointCase& c : CheckpointCases()) {
    SCOPED_TRACE(c.name);
    const RandomData data(TestFieldsOf(c.graph));
    std::vector<TrainingOptions> legs;
    for (const Place& place : places) {
      legs.push_back(SmallTraining(place.scheme, place.devices, kCheckpointMicroBatches));
      legs.back().config.recompute = RecomputeIf(place.recompute);
    }
    if (!c.parallel_stages.empty()) {
      const int stages = *std::max_element(c.parallel_stages.begin(), c.parallel_stages.end()) + 1;
      legs.insert(legs.begin() + 3, SmallTraining("graph", stages, kCheckpointMicroBatches));
      legs[3].config.layout = StagesText(c.parallel_stages);
      ++graphs;
    }
    Leg leg = Serially(c.graph, data, nullptr, kStepsOfALeg);
    std::vector<double> losses = leg.losses;
    for (const TrainingOptions& options : legs) {
      SCOPED_TRACE(testing::Message()
                   << options.config.scheme << " on " << options.config.pipeline);
      auto partition = PipelineTraining::Create(c.graph, data, options).value();
      if (!SumsInLayerOrder(c.graph, partition->partition())) continue;
      partition.reset();
      leg = Piped(c.graph, data, options, &leg.state);
      losses.insert(losses.end(), leg.losses.begin(), leg.losses.end());
    }
    leg = Serially(c.graph, data, &leg.state, 1);
    losses.push_back(leg.losses[0]);
    EXPECT_GT(losses.size(), 10);
    const Leg whole = Serially(c.graph, data, nullptr, static_cast<int>(losses.size()));
    EXPECT_EQ(losses, whole.losses);
    ExpectSameState(leg.state, whole.state);
  }
  EXPECT_GE(graphs, 2);  // with parallel branches
}

// What each optimizer keeps, with rates that depend on the step.
TEST_F(Checkpoint, GoesOnWithEveryOptimizer) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto data = SmallText();
  SgdOptions sgd;
  OptimizerOptions plain = OptimizerOptions::Sgd(sgd);
  sgd.momentum = 0.9f;
  OptimizerOptions momentum = OptimizerOptions::Sgd(sgd);
  momentum.schedule = {/*warmup_steps=*/3, RateDecay::kInverseSqrt, 0};
  RmsPropOptions rmsprop;
  rmsprop.momentum = 0.9f;
  rmsprop.learning_rate = 1e-3f;
  OptimizerOptions squares = OptimizerOptions::RmsProp(rmsprop);
  OptimizerOptions cosine = SmallAdam();
  cosine.schedule = {/*warmup_steps=*/2, RateDecay::kCosine, /*total_steps=*/20};
  for (const OptimizerOptions& optimizer : {plain, momentum, squares, cosine}) {
    SCOPED_TRACE(OptimizerToString(optimizer));
    Leg leg = Serially(graph, *data, nullptr, kStepsOfALeg, optimizer);
    std::vector<double> losses = leg.losses;
    for (const auto& [scheme, devices] :
         std::vector<std::pair<std::string, int>>{{"1f1b", 4}, {"breadth_first", 2}}) {
      TrainingOptions options = SmallTraining(scheme, devices, kCheckpointMicroBatches);
      options.optimizer = optimizer;
      leg = Piped(graph, *data, options, &leg.state);
      losses.insert(losses.end(), leg.losses.begin(), leg.losses.end());
    }
    const Leg whole = Serially(graph, *data, nullptr, static_cast<int>(losses.size()), optimizer);
    EXPECT_EQ(losses, whole.losses);
    ExpectSameState(leg.state, whole.state);
  }
  // Another optimizer has no use for what the file has.
  TrainingOptions options = SmallTraining("1f1b", 2, kCheckpointMicroBatches);
  const Leg adam = Piped(graph, *data, options, nullptr);
  options.optimizer = momentum;
  auto training = PipelineTraining::Create(graph, *data, options);
  ASSERT_THAT(training, IsOk());
  EXPECT_THAT((*training)->SetState(adam.state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("trained by the optimizer adam, not sgd")));
}

// Groups of two devices, with parameters whole and in shards of every kind.
TEST_F(Checkpoint, GoesOnWithOtherShards) {
  for (bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    const auto data = SmallText();
    const auto options_of = [](const std::string& scheme, int devices, Sharding sharding) {
      TrainingOptions options = SmallTraining(scheme, devices, kCheckpointMicroBatches);
      options.config.data = 2;
      options.config.micro_batch_size = kSmallSamples / 2;
      options.config.sharding = sharding;
      return options;
    };
    const TrainingOptions plain = options_of("gpipe", 2, Sharding::kReplicated);
    const std::vector<TrainingOptions> legs = {plain,
                                               options_of("gpipe", 4, Sharding::kOptimizer),
                                               options_of("breadth_first", 2, Sharding::kFully),
                                               options_of("1f1b", 2, Sharding::kFully),
                                               options_of("gpipe", 2, Sharding::kGradients),
                                               options_of("1f1b", 4, Sharding::kReplicated)};
    Leg leg;
    std::vector<double> losses;
    for (size_t i = 0; i < legs.size(); ++i) {
      SCOPED_TRACE(i);
      leg = Piped(graph, *data, legs[i], i == 0 ? nullptr : &leg.state);
      losses.insert(losses.end(), leg.losses.begin(), leg.losses.end());
    }
    const Leg whole = Piped(graph, *data, plain, nullptr, static_cast<int>(losses.size()));
    EXPECT_EQ(losses, whole.losses);
    ExpectSameState(leg.state, whole.state);
  }
}

// Two replicas add their gradients in the same order, whatever their stages.
TEST_F(Checkpoint, GoesOnWithReplicas) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto data = SmallText();
  const TrainingOptions two = SmallTraining("chimera", 2, kCheckpointMicroBatches);
  TrainingOptions four = SmallTraining("chimera", 4, kCheckpointMicroBatches);
  Leg leg = Piped(graph, *data, two, nullptr);
  std::vector<double> losses = leg.losses;
  const TrainingState after_two = leg.state;
  leg = Piped(graph, *data, two, &after_two);
  losses.insert(losses.end(), leg.losses.begin(), leg.losses.end());
  const Leg whole = Piped(graph, *data, two, nullptr, 2 * kStepsOfALeg);
  EXPECT_EQ(losses, whole.losses);
  ExpectSameState(leg.state, whole.state);
  // Other stages share out micro-batches in another way, so the sums agree but for rounding.
  const Leg other = Piped(graph, *data, four, &after_two);
  EXPECT_NEAR(other.losses[0], whole.losses[kStepsOfALeg], 1e-5);
}

// Between runs a stage has one version of its weights, so there is a state to go on from; but only
// for schedules of as many optimizer steps a run.
TEST_F(Checkpoint, AsynchronousSchedulesGoOnBetweenRuns) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (const char* scheme : {"pipedream", "pipedream_2bw"}) {
    SCOPED_TRACE(scheme);
    const TrainingOptions options = SmallTraining(scheme, 2, kCheckpointMicroBatches);
    Leg leg = Piped(graph, *data, options, nullptr);
    std::vector<double> losses = leg.losses;
    const TrainingState first = leg.state;
    EXPECT_GT(first.optimizer_steps, first.step);
    leg = Piped(graph, *data, options, &first);
    losses.insert(losses.end(), leg.losses.begin(), leg.losses.end());
    const Leg whole = Piped(graph, *data, options, nullptr, 2 * kStepsOfALeg);
    EXPECT_EQ(losses, whole.losses);
    ExpectSameState(leg.state, whole.state);
    auto synchronous = PipelineTraining::Create(graph, *data, SmallTraining("1f1b", 2, 8));
    ASSERT_THAT(synchronous, IsOk());
    EXPECT_THAT((*synchronous)->SetState(first),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("in 2 training steps; this schedule takes 1 a step")));
  }
}

TEST_F(Checkpoint, WhatDoesNotFitChangesNothing) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  const TrainingOptions options = SmallTraining("1f1b", 2, kCheckpointMicroBatches);
  const Leg leg = Piped(graph, *data, options, nullptr);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, *data, options));
  ASSERT_THAT(training->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState before, training->State());
  // The last tensor of the last stage, so that anything restored on the way would show.
  TrainingState bad = leg.state;
  const std::string key = "head/table/v";
  ASSERT_EQ(bad.tensors.count(key), 1);
  bad.tensors.at(key).shape = {7};
  EXPECT_THAT(training->SetState(bad),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("leg.safetensors: parameter \"head/table\" is [7] there and "
                                       "["),
                             HasSubstr("] in the model"))));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState after, training->State());
  ExpectSameState(before, after);
}

}  // namespace
}  // namespace pipelab
