#include "tests/small_training.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "experiments/training/comparison.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/comm/transport.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_devices.h"
#include "models/zoo/conv_chain.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/batch_norm.h"
#include "pipelines/runtime/staleness.h"
#include "pipelines/schedules/catalog.h"
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
  options.config.scheme = scheme;
  options.config.pipeline = devices;
  options.config.micro_batches = micro_batches;
  options.config.micro_batch_size = kSmallSamples;
  options.optimizer = SmallAdam();
  options.wait_limit = absl::Seconds(20);
  return options;
}

bool Serves(const StepConfig& config) {
  return MakeSchedule(config.scheme, SchemeSizes(config, config.copies())).ok();
}

Recompute RecomputeIf(bool recompute) { return recompute ? Recompute::kFull : Recompute::kNone; }

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

void ExpectWithinTolerance(const std::vector<double>& losses, const TrainingOptions& options,
                           const std::vector<double>& serial) {
  SchemeResult scheme;
  scheme.config = options.config;
  scheme.losses = losses;
  const Equality equality = CompareLosses(scheme, serial);
  EXPECT_TRUE(equality.ok) << equality.text;
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

std::vector<double> LossesAsPredicted(PipelineTraining* training, int steps, bool all_devices) {
  const absl::StatusOr<Trace> predicted = Simulate(training->program(), training->costs());
  EXPECT_THAT(predicted, IsOk());
  std::vector<double> losses;
  for (int step = 0; predicted.ok() && step < steps; ++step) {
    const absl::StatusOr<TrainingStep> done = training->Step();
    EXPECT_THAT(done, IsOk());
    if (!done.ok()) break;
    losses.push_back(done->loss);
    if (!all_devices) continue;
    SCOPED_TRACE(absl::StrCat("step ", step));
    ExpectStateAndTraffic(*predicted, done->trace);
    for (size_t d = 0; d < predicted->devices.size(); ++d) {
      EXPECT_EQ(done->trace.devices[d].peak_activation, predicted->devices[d].peak_activation)
          << "device " << d;
    }
  }
  return losses;
}

std::vector<double> ExpectAsSerial(const ModelGraph& graph, const BatchSource& data,
                                   const TrainingOptions& options, int steps) {
  SCOPED_TRACE(Describe(options));
  const bool first = options.transport == nullptr || options.transport->processes()->rank() == 0;
  const auto training = PipelineTraining::Create(graph, data, options);
  EXPECT_THAT(training, IsOk());
  if (!training.ok()) return {};
  const Schedule& schedule = (*training)->program().schedule;
  SerialOptions plain = SmallSerial(data, schedule.num_micro_batches);
  if (HasOwnSteps(schedule)) {
    plain.stage_of_layer = (*training)->partition().stage_of_layer;
    plain.staleness = PublishedStaleness(schedule).value();
    EXPECT_TRUE(SumByCopy(schedule, &plain));
  }
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const auto serial = SerialTrainer::Create((*training)->graph(), backend.get(), plain);
  EXPECT_THAT(serial, IsOk());
  if (!serial.ok()) return {};
  const std::vector<double> losses = LossesAsPredicted(training->get(), steps, first);
  for (size_t step = 0; step < losses.size(); ++step) {
    EXPECT_EQ(losses[step], (*serial)->Step().value()) << "step " << step;
  }
  int values = 0;
  for (const LayerSpec& layer : (*training)->graph().layers) {
    for (const ParameterSpec& p : layer.parameters) {
      const auto value = (*training)->ParameterValue(p.name);
      EXPECT_THAT(value, IsOk()) << p.name;
      if (!value.ok()) return {};
      ++values;
      if (first) {
        EXPECT_EQ(*value, (*serial)->ParameterValue(p.name).value()) << p.name;
      }
    }
  }
  EXPECT_GT(values, schedule.num_stages());
  return losses;
}

std::string Describe(const TrainingOptions& options) { return options.config.ToString(); }

}  // namespace pipelab
