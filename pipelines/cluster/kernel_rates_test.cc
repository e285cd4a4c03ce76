#include "pipelines/cluster/kernel_rates.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Rates 100, 150 (n = 200), 120 (k = 20) and 180 (both), of one m.
RateGrid Small() {
  return RateGrid::Make({{{10}, {100, 200}, {10, 20}}}, {100, 120, 150, 180}).value();
}

TEST(RateGrid, StraightInLogarithmsBetweenItsSizes) {
  const RateGrid table = Small();
  EXPECT_NEAR(table.At({10, 100, 10}), 100, 1e-9);
  EXPECT_NEAR(table.At({10, 200, 20}), 180, 1e-9);
  EXPECT_NEAR(table.At({10, std::sqrt(100 * 200), 10}), std::sqrt(100 * 150), 1e-9);
  EXPECT_NEAR(table.At({10, std::sqrt(100 * 200), std::sqrt(10 * 20)}),
              std::pow(100.0 * 120 * 150 * 180, 0.25), 1e-9);
}

TEST(RateGrid, ConstantRateBeyondAndConstantTimeBelow) {
  const RateGrid table = Small();
  EXPECT_NEAR(table.At({1e6, 1e7, 1e8}), 180, 1e-9);
  EXPECT_NEAR(table.At({10, 50, 10}), 50, 1e-9);
  EXPECT_NEAR(table.At({5, 50, 20}), 30, 1e-9);
}

TEST(RateGrid, RefusesWhatBoundsOfASearchRestOn) {
  const auto error = [](std::array<std::vector<double>, 3> axes, std::vector<double> rates) {
    return std::string(RateGrid::Make(std::move(axes), std::move(rates)).status().message());
  };
  EXPECT_EQ(error({{{1}, {1, 2}, {1}}}, {10, 20}), "");
  EXPECT_THAT(error({{{1}, {1, 2}, {1}}}, {10, 9}),
              HasSubstr("rate 1: a larger operation would be slower"));
  EXPECT_THAT(error({{{1}, {1, 2}, {1}}}, {10, 21}), HasSubstr("would take less time"));
  EXPECT_THAT(error({{{1}, {2, 1}, {1}}}, {10, 20}),
              HasSubstr("axis 1: sizes must be above 0 and ascend"));
  EXPECT_THAT(error({{{}, {1}, {1}}}, {}), HasSubstr("axis 0 is empty"));
  EXPECT_THAT(error({{{1}, {1}, {1}}}, {1, 2}), HasSubstr("must have 1 rates"));
  EXPECT_THAT(error({{{1}, {1}, {1}}}, {NAN}), HasSubstr("rate 0 must be above 0"));
  EXPECT_THAT(error({{{INFINITY}, {1}, {1}}}, {1}), HasSubstr("axis 0"));
}

DeviceSpec H100() { return LoadCluster("--cluster", "dgx-h100").value().device; }

double SecondsOf(const DeviceSpec& device, const Operation& operation,
                 NumberType type = NumberType::kBf16) {
  return ToSeconds(OperationTime(device, type, operation).value() - device.launch_overhead.value);
}

// A size of the table: its rate, times what a step sustains of it.
TEST(KernelRates, AProductTakesItsMeasuredTime) {
  const DeviceSpec device = H100();
  const Operation product = MatmulOperation(8192, 8192, 8192);
  const RateGrid* table = device.rates->Find(OperationKind::kMatmul, NumberType::kBf16);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table, device.rates->Find(OperationKind::kMatmul, NumberType::kFp16));
  const double rate = device.rates->sustained->value * table->At({8192, 8192, 8192});
  EXPECT_NEAR(SecondsOf(device, product), product.flops.value() / rate, 1e-9);
  EXPECT_LT(SecondsOf(device, product, NumberType::kFp8), SecondsOf(device, product));
  // A type without a table keeps its share of the peak.
  EXPECT_EQ(device.rates->Find(OperationKind::kMatmul, NumberType::kTf32), nullptr);
  DeviceSpec without = device;
  without.rates.reset();
  EXPECT_EQ(SecondsOf(device, product, NumberType::kTf32),
            SecondsOf(without, product, NumberType::kTf32));
}

// Down to a tile, below which the time stays.
TEST(KernelRates, FewRowsHaveTheRateOfTheFewestOfTheTable) {
  const DeviceSpec device = H100();
  const auto rate = [&](int64_t m) {
    return *device.rates->RateOf(MatmulOperation(m, 8192, 8192), NumberType::kBf16);
  };
  EXPECT_EQ(rate(128), rate(512));
  EXPECT_NEAR(rate(32), rate(512) / 4, 1e-6 * rate(512));
}

TEST(KernelRates, AWeightGradientReadsAndWritesItsSums) {
  const DeviceSpec measured = H100();
  DeviceSpec assumed = measured;
  assumed.rates = nullptr;
  const Operation forward = MatmulOperation(4096, 8192, 4096);
  const double bytes = 8.0 * 4096 * 8192;
  const double seconds = bytes / (measured.memory_bandwidth.value.value() *
                                  measured.memory_efficiency.value.At(bytes));
  const auto more = [&](const DeviceSpec& device, GradientSums sums) {
    Operation gradient = forward;
    gradient.sums_rows = true;
    gradient.sums = sums;
    return SecondsOf(device, gradient) - SecondsOf(device, forward);
  };
  EXPECT_NEAR(more(measured, GradientSums::kMachine), seconds, 2e-9);
  EXPECT_EQ(more(assumed, GradientSums::kMachine), 0);
  for (const DeviceSpec& device : {measured, assumed}) {
    EXPECT_NEAR(more(device, GradientSums::kProduct), seconds, 2e-9);
    EXPECT_EQ(more(device, GradientSums::kApart), 0);
  }
}

TEST(KernelRates, GroupedProductsAreOneKernelOfAllTheirRows) {
  const DeviceSpec device = H100();
  Operation grouped = MatmulOperation(1024, 4096, 4096);
  grouped.groups = 8;
  grouped.flops = 8 * grouped.flops;
  EXPECT_NEAR(SecondsOf(device, grouped), SecondsOf(device, MatmulOperation(8192, 4096, 4096)),
              2e-9);
}

TEST(KernelRates, AttentionByItsKeysForwardAndBackward) {
  const DeviceSpec device = H100();
  const RateGrid* table = device.rates->Find(OperationKind::kAttention, NumberType::kBf16);
  const double sustained = device.rates->sustained->value;
  const AttentionSize size = {4096, 32, 128};
  const Flops causal(2.0 * 4096 * 4096 * 32 * 128);
  const Operation forward = AttentionOperation(causal, 1, size);
  EXPECT_NEAR(SecondsOf(device, forward), causal.value() / (sustained * table->At({4096, 32, 128})),
              1e-9);
  const Operation backward = AttentionGradientOperation(2.5 * causal, 1, size);
  EXPECT_NEAR(SecondsOf(device, backward),
              2.5 * SecondsOf(device, forward) / device.rates->attention_backward->value, 2e-9);
  // A window of 256 keys reads as many as a causal sample of 512 tokens.
  const Flops window(4.0 * 4096 * 256 * 32 * 128);
  EXPECT_NEAR(SecondsOf(device, AttentionOperation(window, 1, size)),
              window.value() / (sustained * table->At({512, 32, 128})), 1e-9);
}

TEST(KernelRates, AFileMayHaveItsOwn) {
  ClusterSpec cluster = LoadCluster("--cluster", "dgx-h100").value();
  const ClusterSpec named = ParseCluster(ClusterToJson(cluster), "named").value();
  EXPECT_EQ(named.device.rates->name, "h100-sxm");
  DropRates(OperationKind::kAttention, NumberType::kBf16, &cluster.device);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec own, ParseCluster(ClusterToJson(cluster), "own"));
  EXPECT_EQ(own.device.rates->name, "");
  EXPECT_EQ(own.device.rates->Find(OperationKind::kAttention, NumberType::kBf16), nullptr);
  const Operation product = MatmulOperation(1000, 3000, 5000);
  EXPECT_EQ(SecondsOf(own.device, product), SecondsOf(named.device, product));
  EXPECT_EQ(ClusterToJson(own), ClusterToJson(ParseCluster(ClusterToJson(own), "again").value()));
}

TEST(KernelRates, ErrorsNameThePlace) {
  const std::string text = ClusterToJson(LoadCluster("--cluster", "dgx-h100").value());
  const auto error = [&](const std::string& rates) {
    const std::string changed = absl::StrReplaceAll(text, {{"\"h100-sxm\"", rates}});
    return std::string(ParseCluster(changed, "a.json").status().message());
  };
  EXPECT_THAT(error("\"h100-sxn\""),
              HasSubstr("device.rates: \"h100-sxn\" is unknown; did you mean h100-sxm"));
  EXPECT_THAT(error("{\"sustained\": {\"value\": 2, \"source\": \"s\"}}"),
              HasSubstr("device.rates.sustained.value: must be above 0 and at most 1, not 2"));
  EXPECT_THAT(error("{\"matmul\": {\"bf17\": {}}}"), HasSubstr("device.rates.matmul.bf17: "));
  EXPECT_THAT(
      error("{\"matmul\": {\"bf16\": {\"m\": [1], \"n\": [1], \"k\": [1, 2], "
            "\"tflops\": [2, 1], \"source\": \"s\"}}}"),
      HasSubstr("device.rates.matmul.bf16.tflops: rate 1: a larger operation would be slower"));
  EXPECT_THAT(error("{\"matmul\": {\"bf16\": {\"m\": [1, \"x\"]}}}"),
              HasSubstr("device.rates.matmul.bf16.m: must be numbers"));
}

// Every table of the catalogue can be read, and says what its numbers are from.
TEST(KernelRates, AllMachinesThatNameTablesHaveThem) {
  int machines = 0;
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, LoadCluster("--cluster", name));
    if (c.device.rates == nullptr) continue;
    ++machines;
    EXPECT_NE(c.device.rates->Find(OperationKind::kMatmul, NumberType::kBf16), nullptr) << name;
    EXPECT_NE(c.device.rates->Find(OperationKind::kAttention, NumberType::kBf16), nullptr) << name;
    for (const auto& [key, table] : c.device.rates->tables) {
      EXPECT_THAT(table.source, HasSubstr("measured: ")) << name;
    }
  }
  EXPECT_GE(machines, 7);
}

}  // namespace
}  // namespace pipelab
