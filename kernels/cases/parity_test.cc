// The CPU backend against the reference: values, bits at other addresses and after other calls, and
// bits of four threads at once.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cases/kernel_case.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace pipelab {
namespace {

constexpr uint64_t kSeed = 11;

std::vector<KernelCase> TestedCases() {
  std::vector<KernelCase> cases = KernelCases(CaseSize::kSmall);
  for (KernelCase& c : KernelCases(CaseSize::kMedium)) cases.push_back(std::move(c));
  return cases;
}

// The bytes of everything that the case writes, after a run on the CPU backend.
std::string BitsOfRun(const KernelCase& c, int64_t shift) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const std::vector<Tensor> tensors = MakeTensors(c, &arena, kSeed, shift);
  c.run(backend.get(), tensors);
  std::string bits;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (c.tensors[t].role == TensorRole::kInput) continue;
    bits.append(static_cast<const char*>(tensors[t].data()), tensors[t].bytes());
  }
  return bits;
}

TEST(CpuParity, EveryKernelIsWithinItsErrorBound) {
  double worst_share = 0;
  for (const KernelCase& c : TestedCases()) {
    SCOPED_TRACE(c.name);
    Arena cpu_arena, reference_arena;
    const std::vector<Tensor> got = MakeTensors(c, &cpu_arena, kSeed);
    const std::vector<Tensor> want = MakeTensors(c, &reference_arena, kSeed);
    c.run(MakeCpuBackend(&cpu_arena).get(), got);
    c.run(MakeReferenceBackend(&reference_arena).get(), want);
    for (size_t t = 0; t < got.size(); ++t) {
      if (c.tensors[t].role == TensorRole::kInput) {
        ASSERT_EQ(std::memcmp(got[t].data(), want[t].data(), got[t].bytes()), 0)
            << "input " << t << " was written";
        continue;
      }
      const std::vector<double> bounds = ErrorBounds(c, want, t, kSeed);
      for (int64_t i = 0; i < got[t].size(); ++i) {
        const double error = std::abs(double{got[t].f32()[i]} - double{want[t].f32()[i]});
        ASSERT_TRUE(error <= bounds[i])
            << "tensor " << t << ", element " << i << ": " << got[t].f32()[i] << " for "
            << want[t].f32()[i] << ", allowed " << bounds[i];
        if (bounds[i] > 0) worst_share = std::max(worst_share, error / bounds[i]);
      }
    }
  }
  // A bound that no case comes near would let a real fault pass.
  EXPECT_GT(worst_share, 0.05) << "the bounds are far too wide";
}

TEST(CpuParity, SameBitsAtOtherAddressesAndAfterOtherCalls) {
  const std::vector<KernelCase> cases = TestedCases();
  std::vector<std::string> bits;
  for (const KernelCase& c : cases) bits.push_back(BitsOfRun(c, 0));
  // Backwards: another history, and whatever blocks the pool hands out by then.
  for (size_t i = cases.size(); i-- > 0;) {
    for (int64_t shift : {1, 8}) {
      EXPECT_TRUE(BitsOfRun(cases[i], shift) == bits[i]) << cases[i].name << ", shift " << shift;
    }
  }
}

TEST(CpuParity, FourThreadsComputeTheBitsOfOne) {
  const std::vector<KernelCase> cases = TestedCases();
  std::vector<std::string> alone;
  for (const KernelCase& c : cases) alone.push_back(BitsOfRun(c, 0));
  std::vector<std::thread> threads;
  std::vector<std::string> differing(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t j = 0; j < cases.size(); ++j) {
        const size_t i = (j + t * 7) % cases.size();  // different kernels side by side
        if (BitsOfRun(cases[i], 0) != alone[i]) differing[t] = cases[i].name;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& name : differing) EXPECT_EQ(name, "");
}

}  // namespace
}  // namespace pipelab
