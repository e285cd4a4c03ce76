// Token slices of any lengths through the runtime: the bits of a serial loop that computes the same
// slices, and the predicted memory to the byte, under TeraPipe and under any valid order.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int kSliceSteps = 3;

class TokenSlices : public testing::Test {
 protected:
  std::unique_ptr<PipelineTraining> MakeTraining(const ModelGraph& graph,
                                                 const TrainingOptions& options) {
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    return training.ok() ? *std::move(training) : nullptr;
  }

  // Losses of some steps, whose memory must be what the simulation says (of a group it is not: a
  // kernel's scratch does not shrink with the samples).
  std::vector<double> Losses(PipelineTraining* training, bool exact_memory = true) {
    const absl::StatusOr<Trace> predicted = Simulate(training->program(), training->costs());
    EXPECT_THAT(predicted, IsOk());
    std::vector<double> losses;
    for (int i = 0; predicted.ok() && i < kSliceSteps; ++i) {
      const absl::StatusOr<TrainingStep> step = training->Step();
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) break;
      losses.push_back(step->loss);
      for (size_t d = 0; d < step->trace.devices.size(); ++d) {
        const DeviceTrace &measured = step->trace.devices[d], &simulated = predicted->devices[d];
        if (exact_memory) {
          EXPECT_EQ(measured.peak_activation.value(), simulated.peak_activation.value())
              << "device " << d << ", step " << i;
        }
        EXPECT_EQ(measured.bytes_sent, simulated.bytes_sent) << "device " << d;
      }
    }
    return losses;
  }

  std::unique_ptr<SerialTrainer> MakeSerial(const ModelGraph& graph, int micro_batches,
                                            std::vector<int64_t> slices) {
    SerialOptions options = SmallSerial(*batches_, micro_batches);
    options.slices = std::move(slices);
    auto trainer = SerialTrainer::Create(graph, backend_.get(), options);
    EXPECT_THAT(trainer, IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }
  static std::vector<double> LossesOf(SerialTrainer* trainer) {
    std::vector<double> losses;
    for (int i = 0; i < kSliceSteps; ++i) losses.push_back(trainer->Step().value());
    return losses;
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
};

TEST_F(TokenSlices, OfAnyLengthsTrainAsASerialLoopOfTheSameSlices) {
  for (const std::vector<int64_t>& slices : std::vector<std::vector<int64_t>>{
           {1, 7}, {7, 1}, {3, 4, 1}, {2, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1}}) {
    for (bool tied : {false, true}) {
      const ModelGraph graph = SmallGpt(tied);
      const auto serial = MakeSerial(graph, 3, slices);
      ASSERT_NE(serial, nullptr);
      const std::vector<double> expected = LossesOf(serial.get());
      for (int devices : {1, 4}) {
        for (bool recompute : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << absl::StrJoin(slices, ",") << ", " << devices << " devices"
                       << (tied ? ", tied" : "") << (recompute ? ", recompute" : ""));
          TrainingOptions options = SmallTraining("terapipe", devices, 3);
          options.config.slices = static_cast<int>(slices.size());
          options.config.recompute = RecomputeIf(recompute);
          options.slices = slices;
          const auto training = MakeTraining(graph, options);
          ASSERT_NE(training, nullptr);
          EXPECT_EQ(training->slices(), slices);
          EXPECT_EQ(Losses(training.get()), expected);
          for (const char* name : {"embedding/tokens", "embedding/positions", "head/table",
                                   "block0/attention/wqkv", "block6/mlp/w2"}) {
            EXPECT_EQ(*training->ParameterValue(name), *serial->ParameterValue(name)) << name;
          }
        }
      }
    }
  }
}

TEST_F(TokenSlices, EachSchemeTrainsAsTheSerialLoop) {
  const std::vector<int64_t> slices = {3, 4, 1};
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto serial = MakeSerial(graph, 4, slices);
  ASSERT_NE(serial, nullptr);
  const std::vector<double> expected = LossesOf(serial.get());
  int schemes = 0;
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenSlices) == 0 || (scheme.options & kForwardOnly) != 0) continue;
    ++schemes;
    for (bool recompute : {false, true}) {
      SCOPED_TRACE(testing::Message() << scheme.name << (recompute ? ", recompute" : ""));
      TrainingOptions options = SmallTraining(std::string(scheme.name), 2, 4);
      options.config.slices = 3;
      options.config.recompute = RecomputeIf(recompute);
      options.slices = slices;
      const auto training = MakeTraining(graph, options);
      ASSERT_NE(training, nullptr);
      EXPECT_EQ(Losses(training.get()), expected);
    }
  }
  EXPECT_EQ(schemes, 4);
}

// Backwards in two parts, recomputes, any order that readiness allows: sums come in other orders,
// so losses agree within rounding; memory is still exact.
TEST_F(TokenSlices, AnyValidOrderTrains) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto serial = MakeSerial(graph, 2, {});
  ASSERT_NE(serial, nullptr);
  const std::vector<double> expected = LossesOf(serial.get());
  RandomShape shape;
  shape.stages = StageGraph::Chain(3);
  shape.placement = Placement::Single({0, 1, 0}, 2, 2);
  shape.num_slices = 3;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    shape.split_backward = seed % 2 == 1;
    shape.recompute = seed % 4 >= 2;
    TrainingOptions options = SmallTraining("", 2, 2);
    options.schedule = RandomOrder(shape, seed);
    options.slices = {2, 5, 1};
    const auto training = MakeTraining(graph, options);
    ASSERT_NE(training, nullptr);
    const std::vector<double> losses = Losses(training.get());
    ASSERT_EQ(losses.size(), expected.size());
    for (int i = 0; i < kSliceSteps; ++i)
      EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << i;
  }
}

// Devices of a group have samples, and each of them all slices.
TEST_F(TokenSlices, GroupsShareTheSamplesOfASlice) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto serial = MakeSerial(graph, 2, {});
  ASSERT_NE(serial, nullptr);
  const std::vector<double> expected = LossesOf(serial.get());
  TrainingOptions options = SmallTraining("", 3, 2);
  SchemeParams sizes{2, 2};
  sizes.slices = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule("terapipe", sizes));
  schedule.placement.num_devices = 3;
  schedule.placement.groups = {{{0, 1}, {2}}};
  schedule.order.insert(schedule.order.begin(), schedule.order[0]);
  options.schedule = schedule;
  const auto training = MakeTraining(graph, options);
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(training->slices(), (std::vector<int64_t>{3, 3, 2}));
  const std::vector<double> losses = Losses(training.get(), /*exact_memory=*/false);
  ASSERT_EQ(losses.size(), expected.size());
  for (int i = 0; i < kSliceSteps; ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << i;
}

TEST_F(TokenSlices, LaterSlicesCostMore) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto training = MakeTraining(graph, SmallTraining("terapipe", 2, 2));
  ASSERT_NE(training, nullptr);
  const CostTable& costs = training->costs();
  ASSERT_EQ(costs.slices.size(), 4u);
  for (int k = 1; k < 4; ++k) {
    EXPECT_GT(costs.slices[k].stages[0].forward, costs.slices[k - 1].stages[0].forward);
    EXPECT_GT(costs.slices[k].stages[0].backward_input,
              costs.slices[k - 1].stages[0].backward_input);
  }
}

TEST_F(TokenSlices, BadRequestsAreRefused) {
  ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto refused = [&](int slices, std::vector<int64_t> lengths, const char* what) {
    TrainingOptions options = SmallTraining("terapipe", 2, 2);
    options.config.slices = slices;
    options.slices = std::move(lengths);
    EXPECT_THAT(PipelineTraining::Create(graph, *batches_, options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused(9, {}, "--slices=9: more token slices than a sample's 8 tokens");
  refused(2, {3, 3, 2}, "token slices of 3,3,2 tokens, but the schedule has 2");
  refused(2, {3, 4}, "token slices of 3,4 tokens: each needs at least 1");
  refused(2, {8, 0}, "token slices of 8,0 tokens: each needs at least 1");
  graph.layers[4].slice_costs = nullptr;
  refused(2, {}, "layer \"block1/mlp\": a gpt_mlp takes whole samples");
}

}  // namespace
}  // namespace pipelab
