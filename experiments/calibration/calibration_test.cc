// From measurements to a specification. The measurements are made up: a machine of which we know
// everything.
#include "experiments/calibration/calibration.h"

#include <string>
#include <utility>

#include "experiments/calibration/rate_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Products at 50 Gflop/s and 2 us, memory at 10 GB/s and 1 us; copies come on top.
MachineMeasurements KnownMachine() {
  MachineMeasurements m;
  m.processor = "Some Processor";
  m.cores = 4;
  m.memory_bytes = int64_t{64} << 30;
  m.probes = KernelProbes(ProbeSizes::kAll);
  for (const KernelProbe& probe : m.probes) {
    KernelTime time;
    const Operation& o = probe.operation;
    time.seconds = HasProducts(o.kind) ? 2e-6 + o.flops.value() / 50e9
                                       : 1e-6 + 4.0 * static_cast<double>(o.numbers) / 10e9;
    if (probe.copied > 0) time.seconds += 1e-6 + 4.0 * static_cast<double>(probe.copied) / 10e9;
    time.rounds = 5;
    time.spread = 0.04;
    m.times.push_back(time);
  }
  m.launch.seconds = 500e-9;
  m.launch.rounds = 5;
  m.link.latency_seconds = 3e-6;
  m.link.bytes_per_second = 1e12;
  m.link.round_trips = 100;
  return m;
}

TEST(Specification, SaysWhatWasMeasured) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, SpecificationOf(KnownMachine()));
  EXPECT_THAT(CheckCluster(cluster), IsOk());
  const DeviceSpec& device = cluster.device;
  EXPECT_EQ(device.name, "Some Processor");
  EXPECT_TRUE(device.own_kernels);
  EXPECT_EQ(device.memory.value, Bytes(int64_t{16} << 30));
  EXPECT_EQ(device.launch_overhead.value, Nanoseconds(500));
  EXPECT_NEAR(device.peaks.at(NumberType::kFp32).value.value(), 50e9, 1e9);
  EXPECT_NEAR(device.memory_bandwidth.value.value(), 10e9, 0.2e9);
  EXPECT_EQ(cluster.levels[0].connection.latency.value, Nanoseconds(3000));
  EXPECT_EQ(cluster.levels[0].connection.bandwidth.value, BytesPerSecond(1e12));
  const auto seconds = [&](const Operation& o) {
    return ToSeconds(*OperationTime(device, NumberType::kFp32, o));
  };
  EXPECT_NEAR(seconds(MatmulOperation(256, 256, 256)), 0.5e-6 + 2e-6 + 33.6e6 / 50e9, 30e-6);
  for (OperationKind kind :
       {OperationKind::kElementwise, OperationKind::kLayerNorm, OperationKind::kBatchNorm,
        OperationKind::kActivation, OperationKind::kGelu, OperationKind::kPool,
        OperationKind::kLoss, OperationKind::kOptimizer}) {
    SCOPED_TRACE(OperationKindName(kind));
    const double expected = 0.5e-6 + 1e-6 + 4 * 200e3 / 10e9;
    EXPECT_NEAR(seconds(MemoryOperation(kind, 200000)), expected, 0.1 * expected);
  }
  // A convolution's copies are an operation of their own.
  const double expected = 0.5e-6 + 2e-6 + 2.0 * 1024 * 64 * 64 / 50e9;
  EXPECT_NEAR(seconds(ConvolutionOperation(1024, 64, 64, 1024 * 128)), expected, 0.1 * expected);
}

TEST(Specification, EveryValueHasItsSource) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, SpecificationOf(KnownMachine()));
  const DeviceSpec& d = cluster.device;
  std::vector<std::string> sources = {d.memory.source,
                                      d.memory_bandwidth.source,
                                      d.launch_overhead.source,
                                      d.memory_efficiency.source,
                                      d.peaks.at(NumberType::kFp32).source,
                                      cluster.levels[0].connection.latency.source,
                                      cluster.levels[0].connection.bandwidth.source};
  for (const auto& [kind, curve] : d.arithmetic) sources.push_back(curve.source);
  for (const auto& [kind, curve] : d.memory_efficiency_of) sources.push_back(curve.source);
  EXPECT_EQ(d.arithmetic.size(), 3);
  EXPECT_EQ(d.memory_efficiency_of.size(), 7);
  for (const std::string& source : sources) EXPECT_THAT(source, StartsWith("measured: "));
  EXPECT_THAT(d.arithmetic.at(OperationKind::kMatmul).source,
              HasSubstr("each the median of 5 rounds (quartiles 4% apart)"));
}

TEST(Specification, IsReadBack) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, SpecificationOf(KnownMachine()));
  const std::string text = ClusterToJson(cluster);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again, ParseCluster(text, "measured.json"));
  EXPECT_EQ(ClusterToJson(again), text);
  const Table table = RateTable(again);
  EXPECT_THAT(table.status(), IsOk());
  EXPECT_THAT(table.ToTerminal(), HasSubstr("matmul"));
}

TEST(Specification, NeedsMeasurements) {
  EXPECT_THAT(SpecificationOf(MachineMeasurements()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no kernels")));
  MachineMeasurements products = KnownMachine();
  for (size_t p = products.probes.size(); p-- > 0;) {
    if (HasProducts(products.probes[p].operation.kind)) continue;
    products.probes.erase(products.probes.begin() + p);
    products.times.erase(products.times.begin() + p);
  }
  EXPECT_THAT(SpecificationOf(products), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                  HasSubstr("with products and without")));
}

// Every probe runs, on the CPU backend, and gets a time.
TEST(Calibration, QuickOneMeasuresThisMachine) {
  CalibrationOptions options = QuickCalibration();
  options.progress = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MachineMeasurements measured, MeasureMachine(options));
  ASSERT_EQ(measured.probes.size(), measured.times.size());
  for (const KernelTime& time : measured.times) {
    EXPECT_GT(time.seconds, 0);
    EXPECT_EQ(time.rounds, 1);
  }
  EXPECT_GT(measured.link.latency_seconds, 0);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, SpecificationOf(measured));
  EXPECT_THAT(CheckCluster(cluster), IsOk());
  EXPECT_TRUE(cluster.device.own_kernels);
}

TEST(Median, OfOddAndEvenNumbers) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

}  // namespace
}  // namespace pipelab
