#include "pipelines/cost/offload.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

constexpr FlopsPerSecond kA100(220e12);  // the paper's: what an A100 computes, and its PCIe
constexpr BytesPerSecond kPcie(15e9);

// The paper's formula and the general one, of a layer of its numbers: 24 h^2 + 4 s h flops a token
// forward, twice that backward.
TEST(OffloadRatio, FormulaIsTheLayersCopiesOverItsCompute) {
  for (const int64_t hidden : {1024, 4096, 8192, 16384}) {
    for (const int64_t sequence : {1024, 4096, 16384, 32768}) {
      const double h = static_cast<double>(hidden), s = static_cast<double>(sequence);
      const double forward = s * (24 * h * h + 4 * s * h) / kA100.value() * 1e9;
      StageCost stage;
      stage.forward = stage.backward_input = stage.backward_weight =
          Nanoseconds(std::llround(forward));
      EXPECT_NEAR(OffloadRatio(hidden, sequence, kA100, kPcie),
                  OffloadRatio(Bytes(20 * sequence * hidden), stage, kPcie), 1e-4);
    }
  }
}

// "In most standard configurations": hidden sizes from 8k on.
TEST(OffloadRatio, LargeLayersAreFree) {
  EXPECT_NEAR(OffloadRatio(8192, 4096, kA100, kPcie), 0.918, 0.001);
  EXPECT_GT(OffloadRatio(4096, 4096, kA100, kPcie), 1);
  EXPECT_LT(OffloadRatio(4096, 32768, kA100, kPcie), 1);
  StageCost stage;
  stage.forward = Milliseconds(1);
  EXPECT_EQ(OffloadRatio(Bytes(1 << 30), stage, BytesPerSecond(0)), 0);
}

}  // namespace
}  // namespace pipelab
