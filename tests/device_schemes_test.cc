// The CUDA backend under every scheme, on emulated devices: what forgets to wait for a stream
// computes with NaNs there.
#include "tests/device_schemes.h"

#include <memory>

#include "gtest/gtest.h"
#include "kernels/cuda/devices.h"
#include "models/layers/serial_trainer.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(EmulatedDevices, EverySchemeTrainsAsSerial) {
  const std::vector<SchemeOutcome> outcomes =
      CheckSchemes(gpu::CudaDevices("emulated"), /*quick=*/false);
  EXPECT_GT(outcomes.size(), 30u);
  int bit_equal = 0;
  for (const SchemeOutcome& o : outcomes) {
    EXPECT_EQ(o.outcome, "ok") << o.name << ": " << o.text;
    bit_equal += o.text.find("bit") != std::string::npos;
  }
  EXPECT_GT(bit_equal, 15);
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
