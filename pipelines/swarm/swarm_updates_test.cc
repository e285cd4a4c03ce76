// Losses of the running swarm beside those of a serial loop, with updates at once and delayed.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/swarm/job.h"
#include "pipelines/swarm/swarm_log.h"
#include "pipelines/swarm/test_network.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr int kUpdatedStages = 3;
constexpr int64_t kUpdateSteps = 6;

// Serial asynchronous training has all steps in one: sample i of it is sample i % batch of step
// i / batch.
class OneLongStep final : public BatchSource {
 public:
  OneLongStep(const BatchSource& data, int64_t batch)
      : BatchSource(data.fields()), data_(data), batch_(batch) {}
  void FillIds(int field, int64_t, int64_t sample, absl::Span<int32_t> out) const override {
    data_.FillIds(field, sample / batch_, sample % batch_, out);  // micro-batches divide a batch
  }

 private:
  const BatchSource& data_;
  const int64_t batch_;
};

swarm::Job JobOf(int delay) {
  swarm::Job job = TestJob(kUpdatedStages, kUpdateSteps);
  job.mutable_model()->set_dropout(0);  // it is keyed by the step
  job.set_delay(delay);
  return job;
}

CoordinatorOptions CheckpointingOptions(const swarm::Job& job, int64_t checkpoint_every) {
  CoordinatorOptions options;
  options.job = job;
  options.checkpoint_every = checkpoint_every;
  options.patience = absl::Seconds(30);
  return options;
}

std::vector<double> SerialLosses(const swarm::Job& job, const UpdateRule& rule) {
  const TextData text = TestData();
  const int micro_batches = job.micro_batches();
  const OneLongStep data(*text.train, int64_t{micro_batches} * job.micro_batch_size());
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  SerialOptions options;
  options.micro_batch_size = job.micro_batch_size();
  options.num_micro_batches = static_cast<int>(kUpdateSteps) * micro_batches;
  options.data = &data;
  options.seed = job.seed();
  options.optimizer = OptimizerOf(job);
  options.staleness.per_update = micro_batches;
  options.staleness.version = [&](int, int m) {
    return static_cast<int>(rule.VersionOf(m / micro_batches));
  };
  const absl::StatusOr<SwarmLayout> layout = LayoutOf(job);
  EXPECT_THAT(layout, IsOk());
  auto trainer = SerialTrainer::Create(layout->graph, backend.get(), options);
  EXPECT_THAT(trainer, IsOk());
  EXPECT_THAT((*trainer)->Step(), IsOk());
  std::vector<double> losses(kUpdateSteps);
  for (size_t m = 0; m < (*trainer)->losses().size(); ++m) {
    losses[m / micro_batches] +=
        (*trainer)->losses()[m] /
        static_cast<double>(int64_t{micro_batches} * job.micro_batch_size() * job.model().tokens());
  }
  return losses;
}

// Exact sums, and rounded ones of as many terms as micro-batches: each step moves the loss by at
// most (micro-batches - 1) epsilon of itself.
void ExpectSerial(const swarm::Job& job, int64_t checkpoint_every) {
  TestNetwork network;
  TestSwarm swarm(&network, CheckpointingOptions(job, checkpoint_every), /*peers=*/6);
  ASSERT_THAT(swarm.Run(), IsOk());
  const std::map<int64_t, double> losses = swarm.losses();
  const std::vector<double> serial = SerialLosses(job, {job.delay(), checkpoint_every});
  ASSERT_EQ(losses.size(), kUpdateSteps);
  const double tolerance = static_cast<double>(kUpdateSteps * (job.micro_batches() - 1)) *
                           serial[0] * std::numeric_limits<float>::epsilon();
  for (const auto& [step, loss] : losses) EXPECT_NEAR(loss, serial[step], tolerance) << step;
}

TEST(SwarmUpdatesTest, LossesAreThoseOfASerialLoop) {
  ExpectSerial(JobOf(/*delay=*/0), /*checkpoint_every=*/2);
}

TEST(SwarmUpdatesTest, DelayedUpdatesAreThoseOfAStaleSerialLoop) {
  ExpectSerial(JobOf(/*delay=*/1), /*checkpoint_every=*/100);
  ExpectSerial(JobOf(/*delay=*/1), /*checkpoint_every=*/3);
  const std::vector<double> at_once = SerialLosses(JobOf(0), {0, 0});
  const std::vector<double> delayed = SerialLosses(JobOf(1), {1, 0});
  EXPECT_EQ(at_once[0], delayed[0]);
  EXPECT_GT(std::abs(at_once[2] - delayed[2]), 1e-4);  // the check above tells them apart
}

TEST(SwarmUpdatesTest, DelayedUpdatesHaveTheSameBitsWhateverHappens) {
  const CoordinatorOptions options =
      CheckpointingOptions(JobOf(/*delay=*/1), /*checkpoint_every=*/4);
  std::map<int64_t, double> undisturbed;
  int64_t lost = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    TestNetwork network;
    if (seed > 0) network.SetFault(RandomFaults(seed, "swarm/updates"));
    TestSwarm swarm(&network, options, /*peers=*/6);
    ASSERT_THAT(swarm.Run(), IsOk()) << seed;
    if (seed == 0) undisturbed = swarm.losses();
    EXPECT_EQ(swarm.losses(), undisturbed) << seed;
    const auto proof = CheckSwarmLog(swarm.log());
    ASSERT_THAT(proof, IsOk()) << seed;
    EXPECT_EQ(proof->gradients, kUpdateSteps * kUpdatedStages * 6) << seed;
    lost += proof->lost;
  }
  EXPECT_GT(lost, 0);
}

TEST(SwarmUpdatesTest, StepsOverlapWithDelayedUpdatesAlone) {
  for (int delay : {0, 1}) {
    TestNetwork network;
    TestSwarm swarm(&network, CheckpointingOptions(JobOf(delay), /*checkpoint_every=*/100),
                    /*peers=*/6);
    ASSERT_THAT(swarm.Run(), IsOk());
    const std::string log = swarm.log();
    const bool overlap = log.find("count step=1 ") < log.find("step step=0 ");
    EXPECT_EQ(overlap, delay == 1);
  }
}

TEST(SwarmUpdatesTest, ACheckpointOfAStepThatNeedsOlderWeightsIsRefused) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/delayed.safetensors");
  CoordinatorOptions options = CheckpointingOptions(JobOf(/*delay=*/1), /*checkpoint_every=*/4);
  options.checkpoint = file;
  {
    TestNetwork network;
    TestSwarm swarm(&network, options, /*peers=*/3);
    ASSERT_THAT(swarm.Run(), IsOk());  // saves step 6 at the end
  }
  TestNetwork network;
  const auto link = network.LinkOf("coordinator");
  EXPECT_THAT(SwarmCoordinator::Create(link.get(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is of step 6")));
}

}  // namespace
}  // namespace pipelab
