#include "tests/small_training.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_devices.h"
#include "models/zoo/conv_chain.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {

ModelGraph SmallChain() {
  ConvChainConfig config;
  config.layers = 9;
  config.channels = 3;
  config.kernel = 3;
  config.height = 6;
  config.width = 8;
  return BuildConvChain(config).value().graph;
}

TrainingOptions SmallTraining(const std::string& scheme, int devices, int micro_batches) {
  TrainingOptions options;
  options.scheme = scheme;
  options.sizes.devices = devices;
  options.sizes.micro_batches = micro_batches;
  options.micro_batch_size = kSmallSamples;
  options.optimizer = SmallAdam();
  options.wait_limit = absl::Seconds(20);
  return options;
}

SerialOptions SmallSerial(const BatchSource& data, int micro_batches) {
  SerialOptions options;
  options.num_micro_batches = micro_batches;
  options.micro_batch_size = kSmallSamples;
  options.data = &data;
  options.optimizer = SmallAdam();
  return options;
}

std::vector<double> SerialLosses(const ModelGraph& graph, const SerialOptions& options, int steps,
                                 const ComputeDevices& devices) {
  const auto on = (devices ? devices : CpuDevices())(1);
  EXPECT_THAT(on, IsOk());
  if (!on.ok()) return {};
  Arena arena(on->front().memory);
  const std::unique_ptr<Backend> backend = on->front().make_backend(&arena);
  const auto trainer = SerialTrainer::Create(graph, backend.get(), options);
  EXPECT_THAT(trainer, IsOk());
  std::vector<double> losses;
  for (int step = 0; trainer.ok() && step < steps; ++step) {
    const absl::StatusOr<double> loss = (*trainer)->Step();
    EXPECT_THAT(loss, IsOk());
    if (!loss.ok()) break;
    losses.push_back(*loss);
  }
  return losses;
}

void ExpectStateAndTraffic(const Trace& predicted, const Trace& measured) {
  ASSERT_EQ(measured.devices.size(), predicted.devices.size());
  for (size_t d = 0; d < predicted.devices.size(); ++d) {
    const DeviceTrace &p = predicted.devices[d], &m = measured.devices[d];
    EXPECT_EQ(m.peak_state, p.peak_state) << "device " << d;
    EXPECT_EQ(m.collective_bytes, p.collective_bytes) << "device " << d;
    EXPECT_EQ(m.bytes_sent, p.bytes_sent) << "device " << d;
  }
}

std::vector<double> LossesAsPredicted(PipelineTraining* training, int steps) {
  const absl::StatusOr<Trace> predicted = Simulate(training->program(), training->costs());
  EXPECT_THAT(predicted, IsOk());
  std::vector<double> losses;
  for (int step = 0; predicted.ok() && step < steps; ++step) {
    const absl::StatusOr<TrainingStep> done = training->Step();
    EXPECT_THAT(done, IsOk());
    if (!done.ok()) break;
    losses.push_back(done->loss);
    SCOPED_TRACE(absl::StrCat("step ", step));
    ExpectStateAndTraffic(*predicted, done->trace);
    for (size_t d = 0; d < predicted->devices.size(); ++d) {
      EXPECT_EQ(done->trace.devices[d].peak_activation, predicted->devices[d].peak_activation)
          << "device " << d;
    }
  }
  return losses;
}

std::string Describe(const TrainingOptions& options) {
  return absl::StrCat(options.scheme, ", devices ", options.sizes.devices, ", micro-batches ",
                      options.sizes.micro_batches, options.sizes.recompute ? ", recompute" : "",
                      ", stages ", testing::PrintToString(options.stage_of_layer));
}

}  // namespace pipelab
