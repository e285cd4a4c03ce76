// The CUDA backend under every scheme, on emulated devices: what forgets to wait for a stream
// computes with NaNs there.
#include "tests/device_schemes.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/compute_device.h"
#include "kernels/cuda/devices.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

gpu::DeviceOptions InBFloat16() {
  gpu::DeviceOptions options;
  options.format.activations = DataType::kBFloat16;
  return options;
}

struct Variant {
  DataType activations;
  bool graphs;
};

class EverySchemeOnDevices : public testing::TestWithParam<Variant> {};

TEST_P(EverySchemeOnDevices, TrainsAsSerial) {
  gpu::DeviceOptions options;
  options.format.activations = GetParam().activations;
  options.graphs = GetParam().graphs;
  const std::vector<SchemeOutcome> outcomes =
      CheckSchemes(gpu::CudaDevices("emulated", options), /*quick=*/false);
  EXPECT_GT(outcomes.size(), 30u);
  int bit_equal = 0;
  for (const SchemeOutcome& o : outcomes) {
    EXPECT_EQ(o.outcome, "ok") << o.name << ": " << o.text;
    bit_equal += o.text.find("bit") != std::string::npos;
  }
  EXPECT_GT(bit_equal, 15);
}

INSTANTIATE_TEST_SUITE_P(Emulated, EverySchemeOnDevices,
                         testing::Values(Variant{DataType::kFloat32, false},
                                         Variant{DataType::kFloat32, true},
                                         Variant{DataType::kBFloat16, true}),
                         [](const testing::TestParamInfo<Variant>& info) {
                           return absl::StrCat(DataTypeName(info.param.activations),
                                               info.param.graphs ? "_graphs" : "");
                         });

using Counts = std::map<std::string, int64_t>;

// Over devices.
Counts Sum(const std::vector<ComputeDevice::Counts>& counts) {
  Counts sum;
  for (const ComputeDevice::Counts& device : counts) {
    for (const auto& [name, count] : device) sum[name] += count;
  }
  return sum;
}

// By the third step nearly all work is in graphs, and after it no new one is made; the losses are
// those without graphs, to the bit.
TEST(EmulatedGraphs, ServeFromTheThirdStepOn) {
  std::vector<ModelGraph> nets = SmallNets(/*dropout=*/0.1, Activation::kRelu);
  nets.push_back(SmallGpt(/*tied=*/true));
  gpu::DeviceOptions with_graphs;
  with_graphs.graphs = true;
  for (const ModelGraph& net : nets) {
    const RandomData data(TestFieldsOf(net));
    for (const int devices : {1, 3}) {
      SCOPED_TRACE(absl::StrCat(net.name, " on ", devices, " devices"));
      TrainingOptions options = SmallTraining("1f1b", devices, 4);
      options.devices = gpu::CudaDevices("emulated");
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto without, PipelineTraining::Create(net, data, options));
      options.devices = gpu::CudaDevices("emulated", with_graphs);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto with, PipelineTraining::Create(net, data, options));
      Counts before;
      for (int step = 1; step <= 5; ++step) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep plain, without->Step());
        PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep graphs, with->Step());
        EXPECT_EQ(graphs.loss, plain.loss) << "step " << step;
        const Counts now = Sum(with->DeviceCounts());
        Counts of_step;
        for (const auto& [name, count] : now) of_step[name] = count - before[name];
        before = now;
        EXPECT_EQ(of_step["lists_refused"], 0);
        if (step < 3) continue;
        EXPECT_GT(of_step["pieces_in_graphs"], 0.9 * static_cast<double>(of_step["pieces"]));
        EXPECT_TRUE(step == 3 || of_step["graphs_captured"] == 0) << "step " << step;
      }
      for (const ComputeDevice::Counts& none : without->DeviceCounts()) EXPECT_TRUE(none.empty());
    }
  }
}

// Copies that normalise together, and each by itself: the CPU's losses but for rounding, and memory
// and traffic as predicted, with and without graphs and in bfloat16.
TEST(EmulatedDevices, BatchNormInCopies) {
  const ModelGraph graph = SmallResNet().graph;
  const RandomData data(TestFieldsOf(graph));
  for (const BatchNormCopies batch_norm : {BatchNormCopies::kSynchronised, BatchNormCopies::kOwn}) {
    TrainingOptions options = SmallTraining("1f1b", 2, 4);
    options.config.data = options.config.micro_batch_size = 2;
    options.config.batch_norm = batch_norm;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto cpu, PipelineTraining::Create(graph, data, options));
    const std::vector<double> expected = LossesAsPredicted(cpu.get(), 2);
    gpu::DeviceOptions with_graphs;
    with_graphs.graphs = true;
    for (const gpu::DeviceOptions& on : {gpu::DeviceOptions(), with_graphs, InBFloat16()}) {
      options.devices = gpu::CudaDevices("emulated", on);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto emulated, PipelineTraining::Create(graph, data, options));
      const std::vector<double> losses = LossesAsPredicted(emulated.get(), 2);
      const bool narrow = on.format.activations == DataType::kBFloat16;
      for (size_t step = 0; step < expected.size(); ++step) {
        EXPECT_NEAR(losses.at(step), expected[step], (narrow ? 0.05 : 1e-3) * expected[step]);
      }
    }
  }
}

// A state goes from devices to the CPU and back, and says the same everywhere.
TEST(EmulatedDevices, StatesComeOutAndGoIn) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto data = SmallText();
  TrainingOptions options = SmallTraining("1f1b", 2, 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto on_cpu, PipelineTraining::Create(graph, *data, options));
  options.devices = gpu::CudaDevices("emulated");
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto emulated, PipelineTraining::Create(graph, *data, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState start, on_cpu->State());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState same, emulated->State());
  ASSERT_EQ(start.tensors.size(), same.tensors.size());
  for (const auto& [name, tensor] : start.tensors) {
    EXPECT_TRUE(tensor.values == same.tensors.at(name).values) << name;
  }
  ASSERT_THAT(emulated->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState later, emulated->State());
  ASSERT_THAT(on_cpu->SetState(later), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep cpu_step, on_cpu->Step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep emulated_step, emulated->Step());
  EXPECT_NEAR(cpu_step.loss, emulated_step.loss, 1e-4 * cpu_step.loss);
}

// Activations and messages have half the bytes; the weights that layers have too, beside their
// masters, which a state holds.
TEST(EmulatedDevices, BFloat16HasHalfTheBytesAndFloatMasters) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto data = SmallText();
  TrainingOptions options = SmallTraining("1f1b", 2, 4);
  options.devices = gpu::CudaDevices("emulated");
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto wide, PipelineTraining::Create(graph, *data, options));
  options.devices = gpu::CudaDevices("emulated", InBFloat16());
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto narrow, PipelineTraining::Create(graph, *data, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState start, wide->State());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState same, narrow->State());
  for (const auto& [name, tensor] : start.tensors) {
    EXPECT_TRUE(tensor.values == same.tensors.at(name).values) << name;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep of_wide, wide->Step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep of_narrow, narrow->Step());
  const int64_t weights = graph.num_parameters();
  int64_t wide_state = 0, narrow_state = 0;
  for (size_t d = 0; d < of_wide.trace.devices.size(); ++d) {
    const DeviceTrace &w = of_wide.trace.devices[d], &n = of_narrow.trace.devices[d];
    EXPECT_EQ(n.bytes_sent, Bytes(w.bytes_sent.value() / 2)) << d;
    EXPECT_EQ(n.collective_bytes, w.collective_bytes) << d;  // gradients of the tie
    EXPECT_LT(n.peak_activation.value(), 0.7 * static_cast<double>(w.peak_activation.value()));
    wide_state += w.peak_state.value();
    narrow_state += n.peak_state.value();
  }
  // The tied table is on both devices.
  const int64_t table = SmallText()->vocabulary() * 16;
  EXPECT_EQ(narrow_state - wide_state, 2 * (weights + table));
}

// From where the one was, the other goes on to the bit.
TEST(EmulatedDevices, BFloat16GoesOnFromAState) {
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  const auto data = SmallText();
  TrainingOptions options = SmallTraining("1f1b", 2, 4);
  options.devices = gpu::CudaDevices("emulated", InBFloat16());
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first, PipelineTraining::Create(graph, *data, options));
  options.config.scheme = "gpipe";
  options.config.data = 2;
  options.config.micro_batch_size = kSmallSamples / 2;
  options.config.sharding = Sharding::kOptimizer;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto second, PipelineTraining::Create(graph, *data, options));
  ASSERT_THAT(first->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  ASSERT_THAT(second->SetState(state), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState again, second->State());
  for (const auto& [name, tensor] : state.tensors) {
    EXPECT_TRUE(tensor.values == again.tensors.at(name).values) << name;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep a, first->Step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep b, second->Step());
  EXPECT_NEAR(a.loss, b.loss, 1e-6 * a.loss);
}

TEST(EmulatedDevices, CudaIsRefusedInABuildWithoutIt) {
  const auto devices = gpu::CudaDevices("cuda")(1);
  ASSERT_FALSE(devices.ok());
  EXPECT_NE(devices.status().message().find("--config=cuda"), std::string::npos);
}

}  // namespace
}  // namespace pipelab
