// The CUDA backend's code on the emulated device: every kernel against the reference, bits at other
// addresses, faults, and the numbers of dropout.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cases/kernel_case.h"
#include "kernels/cuda/case_runner.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/philox.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

TEST(EmulatedParity, EveryKernelIsWithinItsErrorBound) {
  const auto device = gpu::MakeEmulatedDevice();
  std::map<DataType, double> worst_share;
  for (const KernelCase& c : CheckedCases()) {
    const CaseResult result = RunOnDevice(c, device);
    EXPECT_TRUE(result.ok) << c.name << ": " << result.text;
    double& worst = worst_share[c.activations];
    worst = std::max(worst, result.share);
  }
  EXPECT_GT(worst_share[DataType::kFloat32], 0.05) << "the bounds are far too wide";
  // One rounding to 8 bits is all that most of them allow.
  EXPECT_GT(worst_share[DataType::kBFloat16], 0.9) << "the bounds are far too wide";
}

std::vector<KernelCase> Convolutions(DataType type) {
  std::vector<KernelCase> cases;
  for (KernelCase& c : KernelCases(CaseSize::kSmall, type)) {
    if (c.convolution.has_value()) cases.push_back(std::move(c));
  }
  return cases;
}

// With a library in the place of cuDNN: its layout of the weights, its memory, its roundings.
TEST(EmulatedParity, ConvolutionsOfALibraryAreWithinTheirErrorBounds) {
  gpu::EmulatedOptions options;
  options.convolution_library = true;
  options.graph_limits.fewest_pieces = 1;
  for (const bool graphs : {false, true}) {
    options.graphs = graphs;
    const auto device = gpu::MakeEmulatedDevice(options);
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
      for (const KernelCase& c : Convolutions(type)) {
        const CaseResult result = RunOnDevice(c, device);
        EXPECT_TRUE(result.ok) << c.name << ": " << result.text;
        EXPECT_TRUE(BitsOnDevice(c, device, 1) == BitsOnDevice(c, device, 0)) << c.name;
      }
    }
  }
}

// What that library rounds twice, own loops round once, and gradients of weights not at all.
TEST(EmulatedParity, OwnConvolutionsRoundOnce) {
  const auto own = gpu::MakeEmulatedDevice();
  gpu::EmulatedOptions options;
  options.convolution_library = true;
  const auto library = gpu::MakeEmulatedDevice(options);
  int rounded_twice = 0;
  for (KernelCase& c : Convolutions(DataType::kBFloat16)) {
    c.in_bfloat16 = CaseInBFloat16{c.in_bfloat16->floats};
    const CaseResult result = RunOnDevice(c, own);
    EXPECT_TRUE(result.ok) << c.name << ": " << result.text;
    rounded_twice += !RunOnDevice(c, library).ok;
  }
  EXPECT_GT(rounded_twice, 10);  // of some 12 with a bias and 20 gradients
}

// What depends on the order of a GPU's threads and blocks, which has none, shows when that is
// turned round.
TEST(EmulatedParity, SameBitsAtOtherAddressesAfterOtherCallsAndWithThreadsInAnotherOrder) {
  const std::vector<KernelCase> cases = CheckedCases(/*small=*/true);
  const auto device = gpu::MakeEmulatedDevice();
  std::vector<std::string> bits;
  for (const KernelCase& c : cases) bits.push_back(BitsOnDevice(c, device, 0));
  gpu::EmulatedOptions options;
  options.backwards = true;
  const auto other = gpu::MakeEmulatedDevice(options);
  for (size_t i = cases.size(); i-- > 0;) {
    EXPECT_TRUE(BitsOnDevice(cases[i], other, 1) == bits[i]) << cases[i].name;
  }
}

// Running sums: threads of a block that read what others write, and blocks that do.
TEST(EmulatedDevice, AnotherOrderShowsKernelsThatNeedOne) {
  std::map<bool, std::vector<float>> threads, blocks;
  for (const bool backwards : {false, true}) {
    gpu::EmulatedOptions options;
    options.backwards = backwards;
    const auto device = gpu::MakeEmulatedDevice(options);
    Arena arena(device);
    for (auto* const sums : {&threads, &blocks}) {
      const Tensor x = arena.Allocate(DataType::kFloat32, {4}, MemoryKind::kActivation);
      SetHostValues(x, {1, 2, 3, 4});
      float* const memory = static_cast<float*>(x.data());
      const auto add = [memory](int64_t i) { memory[i + 1] += memory[i]; };
      if (sums == &threads) {
        gpu::ForEachBlock(*device, "threads", 1, 0,
                          [add](gpu::Block& block, int64_t) { block.ForEach(3, add); });
      } else {
        gpu::ForEachBlock(*device, "blocks", 3, 0, [add](gpu::Block&, int64_t i) { add(i); });
      }
      (*sums)[backwards] = HostValues(x);
    }
  }
  for (const auto& sums : {threads, blocks}) {
    EXPECT_EQ(sums.at(false), std::vector<float>({1, 3, 6, 10}));
    EXPECT_EQ(sums.at(true), std::vector<float>({1, 3, 5, 7}));
  }
}

TEST(Philox, IsTheProjectsGenerator) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 40}) {
    const CounterRng rng(seed, "dropout");
    for (const uint64_t first : {uint64_t{0}, uint64_t{12345}, (uint64_t{1} << 34) - 2}) {
      for (uint64_t i = first; i < first + 9; ++i) {
        EXPECT_EQ(gpu::RandomBits(rng.seed(), rng.stream(), i), rng.Bits(i));
        EXPECT_EQ(gpu::RandomUniform(rng.seed(), rng.stream(), i), rng.Uniform(i));
      }
    }
  }
}

TEST(EmulatedDevice, DoesNothingBeforeSomebodyWaits) {
  const auto device = gpu::MakeEmulatedDevice();
  Arena arena(device);
  const auto backend = MakeCudaBackend(&arena, device);
  const Tensor x = backend->Allocate({3});
  backend->Fill(x, 2);
  const float* const memory = static_cast<const float*>(x.data());
  EXPECT_NE(memory[0], 2);
  EXPECT_EQ(backend->Finish(), absl::OkStatus());
  EXPECT_EQ(memory[0], 2);
  EXPECT_EQ(HostValues(x), std::vector<float>({2, 2, 2}));
}

TEST(EmulatedDevice, ExhaustedMemoryComesOutOfFinish) {
  gpu::EmulatedOptions options;
  options.memory_limit = 1000;
  const auto device = gpu::MakeEmulatedDevice(options);
  Arena arena(device);
  const auto backend = MakeCudaBackend(&arena, device);
  const Tensor x = backend->Allocate({100}), y = backend->Allocate({1000});
  backend->Fill(x, 1);
  backend->Fill(y, 1);
  backend->LinearTransposed(x.Reshape({1, 100}), x.Reshape({1, 100}), x.Rows(0, 1));
  EXPECT_TRUE(std::isnan(backend->optimizer().SumOfSquares(x)));
  const absl::Status status = backend->Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("4000 bytes"), std::string::npos) << status;
}

// An id that is none gives NaNs, where the host's backends CHECK.
TEST(EmulatedDevice, UnknownIdsShowAsNaN) {
  const auto device = gpu::MakeEmulatedDevice();
  Arena arena(device);
  const auto backend = MakeCudaBackend(&arena, device);
  const Tensor table = backend->Allocate({4, 2}), positions = backend->Allocate({2, 2});
  backend->Fill(table, 1);
  backend->Fill(positions, 1);
  const Tensor ids = arena.Allocate(DataType::kInt32, {2}, MemoryKind::kActivation);
  SetHostIds(ids, {3, 4});
  const Tensor y = backend->Allocate({2, 2});
  backend->embedding().Lookup(ids, table, positions, y);
  const std::vector<float> values = HostValues(y);
  EXPECT_EQ(values[0], 2);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_TRUE(std::isnan(backend->loss().CrossEntropy(y.Reshape({2, 2}), ids)));
}

TEST(EmulatedDeviceDeathTest, TheHostCannotTouchItsTensors) {
  const auto device = gpu::MakeEmulatedDevice();
  Arena arena(device);
  const Tensor x = arena.Allocate(DataType::kFloat32, {3}, MemoryKind::kActivation);
  EXPECT_DEATH(x.f32(), "HostValues");
}

}  // namespace
}  // namespace pipelab
