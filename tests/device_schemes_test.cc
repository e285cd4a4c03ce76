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
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class EverySchemeOnDevices : public testing::TestWithParam<bool> {};

TEST_P(EverySchemeOnDevices, TrainsAsSerial) {
  gpu::DeviceOptions options;
  options.graphs = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Graphs, EverySchemeOnDevices, testing::Bool());

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
    const RandomData data(FieldsOf(net));
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

TEST(EmulatedDevices, CudaIsRefusedInABuildWithoutIt) {
  const auto devices = gpu::CudaDevices("cuda")(1);
  ASSERT_FALSE(devices.ok());
  EXPECT_NE(devices.status().message().find("--config=cuda"), std::string::npos);
}

}  // namespace
}  // namespace pipelab
