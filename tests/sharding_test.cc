// A small GPT on P = 2 and 4 pipeline devices times groups of 2 and 4, with its parameters sharded
// in every way: the losses and parameters of whole parameters, to the bit where sums have the same
// order; state, activations and traffic as predicted, to the byte.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/weight_ring.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kShardingSteps = 8;

struct ShardingResult {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;  // in graph order
};

class ShardingTest : public testing::Test {
 protected:
  TrainingOptions OptionsOf(const std::string& scheme, int devices, int data_parallel,
                            int micro_batches) {
    TrainingOptions options = SmallTraining(scheme, devices, micro_batches);
    options.config.data = data_parallel;
    options.config.micro_batch_size = 1;
    return options;
  }

  // Trains, comparing every step's memory and traffic with the simulator's.
  ShardingResult Train(const ModelGraph& graph, const TrainingOptions& options) {
    ShardingResult result;
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return result;
    const auto predicted = Simulate((*training)->program(), (*training)->costs());
    EXPECT_THAT(predicted, IsOk());
    if (!predicted.ok()) return result;
    if (const Schedule& schedule = (*training)->program().schedule; schedule.weights_travel) {
      ring_sums_ = WeightRing::Make(schedule)->sums;
      stage_of_layer_ = (*training)->partition().stage_of_layer;
    }
    for (int step = 0; step < kShardingSteps; ++step) {
      const absl::StatusOr<TrainingStep> done = (*training)->Step();
      EXPECT_THAT(done, IsOk());
      if (!done.ok()) return result;
      result.losses.push_back(done->loss);
      ExpectStateAndTraffic(*predicted, done->trace);
      for (size_t d = 0; d < done->trace.devices.size(); ++d) {
        const DeviceTrace &p = predicted->devices[d], &m = done->trace.devices[d];
        if (step > 0) {
          EXPECT_EQ(p.peak_activation, m.peak_activation) << "device " << d;
        }
        state_.resize(done->trace.devices.size());
        state_[d] = m.peak_state;
      }
    }
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        auto value = (*training)->ParameterValue(p.name);
        EXPECT_THAT(value, IsOk());
        if (!value.ok()) return result;
        EXPECT_EQ(static_cast<int64_t>(value->size()), p.size()) << p.name;
        result.parameters.push_back(*std::move(value));
      }
    }
    return result;
  }

  std::vector<double> Serial(const ModelGraph& graph, const TrainingOptions& o) {
    SerialOptions options = SmallSerial(*batches_, o.config.micro_batches);
    options.micro_batch_size = o.samples();
    return SerialLosses(graph, options, kShardingSteps);
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  std::vector<std::vector<int>> ring_sums_;  // of weights that travel, and the stages that add so
  std::vector<int> stage_of_layer_;
  std::vector<Bytes> state_;  // measured peaks of the last training, by device
};

TEST_F(ShardingTest, EveryShardingTrainsAsWholeParameters) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    for (const auto& [scheme, devices, data_parallel] :
         {std::make_tuple("breadth_first", 2, 2), std::make_tuple("1f1b", 2, 2),
          std::make_tuple("interleaved", 2, 4), std::make_tuple("chimera", 2, 2),
          std::make_tuple("zbv", 2, 2)}) {
      TrainingOptions options = OptionsOf(scheme, devices, data_parallel, 4);
      const ShardingResult whole = Train(graph, options);
      ASSERT_EQ(whole.losses.size(), size_t{kShardingSteps});
      ASSERT_LT(whole.losses.back(), whole.losses.front());
      const std::vector<double> serial = Serial(graph, options);
      ExpectWithinTolerance(whole.losses, options, serial);
      const Bytes before = state_[0];
      for (Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
        for (bool hard : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << scheme << " D=" << data_parallel << " " << ShardingName(sharding)
                       << " tied=" << tied << " overlap=" << hard);
          options.config.sharding = sharding;
          options.config.overlap_data = hard;
          options.rendezvous = hard;
          const ShardingResult parts = Train(graph, options);
          ASSERT_EQ(parts.losses.size(), size_t{kShardingSteps});
          // One sum for each stage in the same order: optimizer parts always, the others where a
          // stage's weight gradients are one run and there is one replica.
          const bool same_sums = sharding == Sharding::kOptimizer ||
                                 std::string(scheme) == "breadth_first" ||
                                 std::string(scheme) == "1f1b";
          if (same_sums) {
            EXPECT_EQ(parts.losses, whole.losses);
            EXPECT_EQ(parts.parameters, whole.parameters);
          } else {
            ExpectWithinTolerance(parts.losses, options, serial);
          }
          if (sharding == Sharding::kOptimizer) {
            EXPECT_LT(state_[0], before);
          }
        }
      }
    }
  }
}

// Activations stay and weights travel: the bits of a loop that adds as the ring does, which is by
// micro-batch where no W waits. Ties are summed over the devices instead.
TEST_F(ShardingTest, WeightsThatTravelTrainAsTheRingAdds) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = SmallGpt(tied);
    for (const char* scheme :
         {"weipipe_naive", "weipipe", "weipipe_zb1", "weipipe_zb2", "tawpipe"}) {
      for (const int devices : {2, 3, 4, 6}) {
        SCOPED_TRACE(testing::Message() << scheme << " P=" << devices << " tied=" << tied);
        TrainingOptions options = OptionsOf(scheme, devices, 1, 2 * devices);
        options.rendezvous = tied;
        if (devices == 6 && scheme == std::string("tawpipe")) options.config.group_size = 2;
        const ShardingResult travelling = Train(graph, options);
        SerialOptions serial = SmallSerial(*batches_, options.config.micro_batches);
        serial.micro_batch_size = options.samples();
        if (!tied) {
          serial.sums_of_stage = ring_sums_;
          serial.stage_of_layer = stage_of_layer_;
          EXPECT_EQ(travelling.losses, SerialLosses(graph, serial, kShardingSteps));
        } else {
          ExpectWithinTolerance(travelling.losses, options,
                                SerialLosses(graph, serial, kShardingSteps));
        }
      }
    }
  }
}

// What is sharded is not there: the state of a breadth-first device with eight of its group.
TEST_F(ShardingTest, StateShrinks) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  TrainingOptions options = OptionsOf("breadth_first", 2, 4, 2);
  options.config.overlap_data = false;  // which keeps one more stage's gradients
  std::vector<Bytes> state;
  for (Sharding sharding :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    options.config.sharding = sharding;
    Train(graph, options);
    state.push_back(state_[0]);
  }
  EXPECT_LT(state[1], state[0]);
  EXPECT_LT(state[2], state[1]);
  EXPECT_LT(state[3], state[2]);
  EXPECT_LT(state[3].value(), state[0].value() * 2 / 3);
}

}  // namespace
}  // namespace pipelab
