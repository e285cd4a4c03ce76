#include "pipelines/cluster/device.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

EfficiencyCurve Curve(std::vector<EfficiencyCurve::Point> points) { return {std::move(points)}; }

TEST(EfficiencyCurve, PassesThroughItsPoints) {
  const EfficiencyCurve curve = Curve({{1e6, 0.1}, {1e8, 0.4}, {1e10, 0.8}});
  ASSERT_THAT(CheckCurve(curve), IsOk());
  EXPECT_DOUBLE_EQ(curve.At(1e6), 0.1);
  EXPECT_DOUBLE_EQ(curve.At(1e8), 0.4);
  EXPECT_DOUBLE_EQ(curve.At(1e10), 0.8);
  // Halfway in the logarithms: the geometric mean of size and share.
  EXPECT_DOUBLE_EQ(curve.At(1e7), 0.2);
  EXPECT_NEAR(curve.At(1e9), std::sqrt(0.4 * 0.8), 1e-12);
  // Constant share beyond the last point, constant time before the first.
  EXPECT_DOUBLE_EQ(curve.At(1e15), 0.8);
  EXPECT_DOUBLE_EQ(1e6 / curve.At(1e6), 10 / curve.At(10));
}

TEST(EfficiencyCurve, LargerOperationsNeverTakeLessTime) {
  const EfficiencyCurve curve = Curve({{3, 0.01}, {10, 0.03}, {400, 0.9}, {1e4, 0.5}, {1e5, 0.6}});
  ASSERT_THAT(CheckCurve(curve), IsOk());
  double before = 0;
  for (double size = 0.1; size < 1e6; size *= 1.01) {
    const double time = size / curve.At(size);
    EXPECT_GE(time, before * (1 - 1e-12)) << size;
    before = time;
  }
}

TEST(EfficiencyCurve, BadPointsAreNamed) {
  const auto message = [](std::vector<EfficiencyCurve::Point> points) {
    return std::string(CheckCurve(Curve(std::move(points))).message());
  };
  EXPECT_EQ(message({}), "must have a point");
  EXPECT_EQ(message({{0, 0.5}}), "point 0: the size must be above 0, not 0");
  EXPECT_EQ(message({{1, 0.5}, {2, 1.5}}),
            "point 1: the share must be above 0 and at most 1, not 1.5");
  EXPECT_EQ(message({{1, 0.5}, {2, 0}}), "point 1: the share must be above 0 and at most 1, not 0");
  EXPECT_EQ(message({{2, 0.5}, {2, 0.6}}), "point 1: sizes must ascend");
  EXPECT_THAT(message({{1, 0.1}, {2, 0.3}}), HasSubstr("point 1: the share rises so fast"));
  EXPECT_EQ(message({{1, 0.1}, {2, 0.2}}), "");
  EXPECT_THAT(message({{1, NAN}}), HasSubstr("point 0: the share"));
  EXPECT_THAT(message({{INFINITY, 0.5}}), HasSubstr("point 0: the size"));
}

DeviceSpec SomeDevice() {
  DeviceSpec device;
  device.name = "some";
  device.peaks[NumberType::kFp32] = {FlopsPerSecond(10e12), "test"};
  device.peaks[NumberType::kFp16] = {FlopsPerSecond(100e12), "test"};
  device.memory = {Bytes(int64_t{16} << 30), "test"};
  device.memory_bandwidth = {BytesPerSecond(1e12), "test"};
  device.launch_overhead = {Microseconds(5), "test"};
  device.arithmetic[OperationKind::kMatmul] = {Curve({{1e6, 0.5}}), "test"};
  device.memory_efficiency = {Curve({{1, 0.8}}), "test"};
  return device;
}

TEST(OperationTime, IsTheLargerOfArithmeticAndMemoryPlusTheLaunch) {
  const DeviceSpec device = SomeDevice();
  const auto time = [&](NumberType type, Flops flops, int64_t numbers, OperationKind kind) {
    Operation operation = MemoryOperation(kind, numbers);
    operation.flops = flops;
    const auto t = OperationTime(device, type, operation);
    EXPECT_THAT(t, IsOk());
    return t.value_or(Nanoseconds(-1));
  };
  constexpr auto kMatmul = OperationKind::kMatmul;
  // 1 Gflop at 5 Tflop/s: 200 us; 8 MB at 0.8 TB/s: 10 us.
  EXPECT_EQ(time(NumberType::kFp32, Flops(1e9), 2000000, kMatmul), Microseconds(205));
  // At 50 Tflop/s: 20 us; 80 MB: 100 us.
  EXPECT_EQ(time(NumberType::kFp16, Flops(1e9), 40000000, kMatmul), Microseconds(105));
  EXPECT_EQ(time(NumberType::kFp16, Flops(1e9), 0, kMatmul), Microseconds(25));
  EXPECT_EQ(time(NumberType::kFp16, Flops(0), 0, kMatmul), Microseconds(5));
  EXPECT_EQ(time(NumberType::kFp32, Flops(1e9), 2000000, OperationKind::kElementwise),
            Microseconds(15));
}

TEST(OperationTime, KindsMayHaveAMemoryCurveOfTheirOwn) {
  DeviceSpec device = SomeDevice();
  device.memory_efficiency_of[OperationKind::kPool] = {Curve({{1, 0.1}}), "test"};
  const auto time = [&](OperationKind kind) {
    return OperationTime(device, NumberType::kFp32, MemoryOperation(kind, 2000000)).value();
  };
  EXPECT_EQ(time(OperationKind::kPool), Microseconds(85));
  EXPECT_EQ(time(OperationKind::kLayerNorm), Microseconds(15));
  EXPECT_EQ(time(OperationKind::kElementwise), Microseconds(15));
}

TEST(OperationTime, MeasuredOperationsTakeTheirTimeAnywhere) {
  const auto time =
      OperationTime(DeviceSpec(), NumberType::kBf16, MeasuredOperation(Microseconds(7)));
  ASSERT_THAT(time, IsOk());
  EXPECT_EQ(*time, Microseconds(7));
}

TEST(FlopsSpent, AreThoseOfWholeTiles) {
  DeviceSpec device = SomeDevice();
  const Operation narrow = MatmulOperation(1024, 32, 100);
  EXPECT_EQ(FlopsSpent(device, narrow), narrow.flops);
  device.product_tile = {{8, 128, 128}, "test"};
  EXPECT_DOUBLE_EQ(FlopsSpent(device, narrow).value(), 2.0 * 1024 * 128 * 128);
  const Operation whole = MatmulOperation(8, 256, 128);
  EXPECT_EQ(FlopsSpent(device, whole), whole.flops);
  EXPECT_EQ(FlopsSpent(device, AttentionOperation(Flops(100), 1, {100, 7, 64})), Flops(200));
  EXPECT_EQ(FlopsSpent(device, ElementwiseOperation(100)), Flops(0));
}

TEST(OperationTime, OwnOperationsCountWhereOurKernelsRun) {
  DeviceSpec device = SomeDevice();
  const Operation own = OwnOperation(OperationKind::kLayerNorm, 1000000);
  EXPECT_EQ(OperationTime(device, NumberType::kFp32, own).value(), Nanoseconds(0));
  device.own_kernels = true;
  EXPECT_EQ(
      OperationTime(device, NumberType::kFp32, own).value(),
      OperationTime(device, NumberType::kFp32, MemoryOperation(OperationKind::kLayerNorm, 1000000))
          .value());
  EXPECT_GT(OperationTime(device, NumberType::kFp32, own).value(), Nanoseconds(0));
}

TEST(OperationTime, UnalignedProductsGetTheirShare) {
  DeviceSpec device = SomeDevice();
  const auto time = [&](int64_t m, int64_t n, int64_t k) {
    return OperationTime(device, NumberType::kFp32, MatmulOperation(m, n, k)).value().value() -
           device.launch_overhead.value.value();
  };
  const int64_t aligned = time(4096, 4096, 4096), odd = time(4096, 4095, 4096);
  device.product_alignment = {{{{1, 0.25}, {2, 0.5}, {8, 1}}}, "test"};
  EXPECT_EQ(time(4096, 4096, 4096), aligned);
  EXPECT_NEAR(time(4096, 4095, 4096), 4.0 * static_cast<double>(odd), 2);
  EXPECT_NEAR(time(4096, 4096, 4094), 2.0 * static_cast<double>(aligned) * 4094 / 4096, 4);
  // Rows are not next to each other: m, and k where a weight's gradient sums over them.
  EXPECT_NEAR(time(4095, 4096, 4096), static_cast<double>(aligned) * 4095 / 4096, 4);
  const ProductAlignment& share = device.product_alignment->value;
  EXPECT_EQ(share.At(WeightGradientOperation(4095, 4096, 4096)), 1);
  EXPECT_EQ(share.At(WeightGradientOperation(4096, 4096, 4095)), 0.25);
  // Operations without sizes count as aligned.
  Operation unknown;
  EXPECT_EQ(device.product_alignment->value.At(unknown), 1);
}

TEST(ProductAlignment, BadPointsAreNamed) {
  const auto message = [](std::vector<ProductAlignment::Point> points) {
    return std::string(CheckAlignment({std::move(points)}).message());
  };
  EXPECT_EQ(message({{1, 0.25}, {2, 0.25}, {8, 1}}), "");
  EXPECT_EQ(message({{1, 1}}), "");
  EXPECT_EQ(message({}), "must have a point");
  const std::string numbers =
      "numbers must begin at 1, each a multiple of the one before and above it";
  EXPECT_EQ(message({{2, 1}}), "point 0: " + numbers);
  EXPECT_EQ(message({{1, 0.5}, {1, 1}}), "point 1: " + numbers);
  EXPECT_EQ(message({{1, 0.5}, {2, 0.6}, {3, 1}}), "point 2: " + numbers);
  EXPECT_EQ(message({{1, 0}, {2, 1}}), "point 0: the share must be above 0 and at most 1, not 0");
  EXPECT_EQ(message({{1, 0.5}, {2, 1.5}}),
            "point 1: the share must be above 0 and at most 1, not 1.5");
  EXPECT_EQ(message({{1, 0.5}, {2, 0.4}}),
            "point 1: the share must not be less than the one before");
  EXPECT_EQ(message({{1, 0.5}, {2, 0.6}}), "the last share must be 1");
}

TEST(RunTime, IsTheLargerOfTheDevicesSumAndTheHosts) {
  DeviceSpec device = SomeDevice();
  device.launch_overhead.value = Nanoseconds(0);
  // 10 us each: 2e6 numbers of 4 bytes at 0.8 TB/s.
  const std::vector<Operation> run(3, ElementwiseOperation(2000000));
  const auto time = [&](int64_t collectives, Nanoseconds collectives_time) {
    return RunTime(device, NumberType::kFp32, run, collectives, collectives_time).value();
  };
  EXPECT_EQ(time(0, Nanoseconds(0)), Microseconds(30));
  EXPECT_EQ(time(1, Microseconds(5)), Microseconds(35));
  device.host_launch = {Microseconds(9), "test"};
  EXPECT_EQ(time(0, Nanoseconds(0)), Microseconds(30));
  EXPECT_EQ(time(1, Microseconds(5)), Microseconds(36));
  device.host_launch = {Microseconds(20), "test"};
  EXPECT_EQ(time(0, Nanoseconds(0)), Microseconds(60));
  EXPECT_EQ(time(1, Microseconds(45)), Microseconds(80));
  EXPECT_EQ(RunTime(device, NumberType::kFp32, {}).value(), Nanoseconds(0));
  const std::vector<Operation> measured = {MeasuredOperation(Nanoseconds(5)), run[0]};
  EXPECT_EQ(RunTime(device, NumberType::kFp32, measured).value(), Nanoseconds(20005));
}

// One call of three, and none, of a graph that launches its collectives too.
TEST(RunTime, TheHostTakesTimeForEachCall) {
  DeviceSpec device = SomeDevice();
  device.host_launch = {Milliseconds(1), "test"};
  Operation grouped = ElementwiseOperation(1), graphed = grouped;
  grouped.calls = 3;
  graphed.calls = 0;
  const auto time = [&](const std::vector<Operation>& run) {
    return RunTime(device, NumberType::kFp32, run, /*collectives=*/1, Nanoseconds(0)).value();
  };
  EXPECT_EQ(time({grouped}), Milliseconds(4));
  EXPECT_EQ(time({grouped, graphed}), Milliseconds(4));
  EXPECT_LT(time({graphed, graphed}), Milliseconds(1));
}

TEST(RunTime, OperationsOfOtherKernelsAreNotLaunched) {
  DeviceSpec device = SomeDevice();
  device.host_launch = {Milliseconds(1), "test"};
  const std::vector<Operation> run = {ElementwiseOperation(1),
                                      OwnOperation(OperationKind::kLayerNorm, 1)};
  EXPECT_EQ(RunTime(device, NumberType::kFp32, run).value(), Milliseconds(1));
  device.own_kernels = true;
  EXPECT_EQ(RunTime(device, NumberType::kFp32, run).value(), Milliseconds(2));
}

TEST(OperationTime, SaysWhatTheDeviceLacks) {
  const DeviceSpec device = SomeDevice();
  const auto message = [&](NumberType type, OperationKind kind) {
    Operation operation = MemoryOperation(kind, 1);
    operation.flops = Flops(1);
    return std::string(OperationTime(device, type, operation).status().message());
  };
  EXPECT_EQ(message(NumberType::kBf16, OperationKind::kMatmul), "device some has no peak for bf16");
  EXPECT_EQ(message(NumberType::kFp32, OperationKind::kConvolution),
            "device some has no efficiency for convolution");
}

TEST(Names, AreReadBack) {
  for (NumberType type :
       {NumberType::kFp32, NumberType::kTf32, NumberType::kBf16, NumberType::kFp16}) {
    EXPECT_EQ(FindNumberType(NumberTypeName(type)).value(), type);
  }
  for (OperationKind kind :
       {OperationKind::kMatmul, OperationKind::kConvolution, OperationKind::kAttention,
        OperationKind::kElementwise, OperationKind::kLayerNorm, OperationKind::kBatchNorm,
        OperationKind::kActivation, OperationKind::kGelu, OperationKind::kPool,
        OperationKind::kLoss, OperationKind::kOptimizer, OperationKind::kMeasured}) {
    EXPECT_EQ(FindOperationKind(OperationKindName(kind)).value(), kind);
  }
  EXPECT_EQ(std::string(FindNumberType("int8").status().message()),
            "\"int8\" is unknown; there are fp32, tf32, bf16, fp16, fp8");
}

TEST(OperationTime, StopsBeforeSumsWouldNotFit) {
  DeviceSpec device;
  device.memory_bandwidth = {BytesPerSecond(1e-30), "test"};
  device.memory_efficiency = {Curve({{1, 1e-30}}), "test"};
  EXPECT_EQ(*OperationTime(device, NumberType::kFp32, ElementwiseOperation(int64_t{1} << 40)),
            Milliseconds(1000000000));
}

}  // namespace
}  // namespace pipelab
