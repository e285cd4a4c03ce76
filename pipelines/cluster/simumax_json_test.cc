#include "pipelines/cluster/simumax_json.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_json.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/cluster/machine_values.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cluster/simumax_sample.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

double SimumaxSeconds(const ClusterSpec& c, const Operation& o) {
  return ToSeconds(OperationTime(c.device, NumberType::kBf16, o).value());
}

TEST(SimumaxJson, ProductsTakeTheTimeOfTheirShapeAndPass) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, ParseCluster(kSimumaxSample, "box.json"));
  LayerOperations ops;
  AddMatmul(4096, 2048, 8192, &ops);
  const double flops = 2.0 * 4096 * 2048 * 8192;
  EXPECT_NEAR(SimumaxSeconds(c, ops.forward[0]), flops / 0.7e15, 1e-9);
  EXPECT_NEAR(SimumaxSeconds(c, ops.backward_input[0]), flops / 0.6e15, 1e-9);
  // It has in it what adds it to sums in 4 bytes, which no other kernel does then.
  EXPECT_NEAR(SimumaxSeconds(c, ops.backward_weight[0]), flops / 0.4e15, 1e-9);
  Operation sum = ElementwiseOperation(int64_t{3} * 2048 * 8192);
  EXPECT_GT(SimumaxSeconds(c, sum), 0);
  sum.adds_gradient = sum.of_product = true;
  EXPECT_EQ(SimumaxSeconds(c, sum), 0);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds none, RunTime(c.device, NumberType::kBf16, {sum}));
  EXPECT_EQ(none, Nanoseconds(0));
  Operation grouped = MatmulOperation(2048, 4096, 1024);
  grouped.groups = 8;
  grouped.flops = 8 * grouped.flops;
  EXPECT_NEAR(SimumaxSeconds(c, grouped), grouped.flops.value() / 0.25e15, 1e-9);
}

TEST(SimumaxJson, AttentionIsMeasuredInBothPasses) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, ParseCluster(kSimumaxSample, "box.json"));
  // SimuMax counts 4 flops for each of all pairs forward and 10 backward.
  const double pairs = 4096.0 * 4096 * 8 * 128;
  const Flops causal(2 * pairs * (4096 + 64) / 4096);
  EXPECT_NEAR(SimumaxSeconds(c, AttentionOperation(causal, 1, {4096, 8, 128})), 4 * pairs / 0.9e15,
              1e-9);
  EXPECT_NEAR(SimumaxSeconds(c, AttentionGradientOperation(2.5 * causal, 1, {4096, 8, 128})),
              10 * pairs / 0.5e15, 1e-9);
}

TEST(SimumaxJson, MemoryAndLinksAreThoseOfTheFile) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, ParseCluster(kSimumaxSample, "box.json"));
  const double gib = 1024.0 * 1024 * 1024;
  EXPECT_EQ(c.name, "box");
  EXPECT_EQ(c.device.memory.value, Bytes(int64_t{64} << 30));
  EXPECT_EQ(c.device.peaks.size(), 1u);  // no fp8
  const int64_t numbers = int64_t{1} << 28;
  EXPECT_NEAR(SimumaxSeconds(c, ElementwiseOperation(numbers)),
              20e-6 + 2.0 * static_cast<double>(numbers) / (0.5 * 4000 * gib), 5e-6);
  ASSERT_EQ(c.levels.size(), 2u);
  EXPECT_EQ(c.levels[0].size, 4);
  // A message is no faster than its link.
  EXPECT_DOUBLE_EQ(c.levels[0].connection.bandwidth.value.value(), 400e9);
  ASSERT_EQ(c.levels[0].rings.size(), 1u);
  const RingConnection& ring = c.levels[0].rings[0];
  EXPECT_EQ(ring.connection.latency.value, Microseconds(6));
  EXPECT_DOUBLE_EQ(ring.connection.bandwidth.value.value(), 0.5 * 400 * gib);
  EXPECT_DOUBLE_EQ(ring.all_reduce->value.value(), 0.75 * 400 * gib);
  EXPECT_DOUBLE_EQ(ring.all_to_all->value.value(), 0.6 * 400 * gib);
  EXPECT_DOUBLE_EQ(ExchangePath(c, {0, 1, 2, 3}, 1).bandwidth.value(), 0.6 * 400 * gib * 4 / 3);
  EXPECT_EQ(c.device.collective_overhead->value, Microseconds(50));
  EXPECT_DOUBLE_EQ(c.levels[1].connection.bandwidth.value.value(), 200e9 / 4);
  EXPECT_EQ(c.levels[1].connection.latency.value, Microseconds(35));
  for (const MachineValue& v : ValuesOf(c)) {
    EXPECT_NE(OriginOf(v.source).name, "not given") << v.place;
  }
}

TEST(SimumaxJson, RingsOverPcieAreByRanks) {
  const std::string text = absl::StrReplaceAll(
      kSimumaxSample, {{"\"intra_with_pcie\": false", "\"intra_with_pcie\": true"},
                       {"\"high_intra_node\"", "\"intra_node_pcie_8x\""}});
  EXPECT_THAT(std::string(ParseCluster(text, "box.json").status().message()),
              HasSubstr("box.json: networks.intra_node_pcie_2x: missing"));
}

TEST(SimumaxJson, IsAClusterLikeAnyOther) {
  const std::string path = testing::TempDir() + "/box.json";
  ASSERT_THAT(WriteFileAtomically(path, kSimumaxSample), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, LoadCluster("--cluster", path + ":2"));
  EXPECT_EQ(c.max_devices(), 8);
  const std::string written = ClusterToJson(c);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again, ParseCluster(written, "again"));
  EXPECT_EQ(ClusterToJson(again), written);
  const Operation product = MatmulOperation(4096, 2048, 8192);
  EXPECT_TRUE(
      again.device.rates->FindShapes(OperationKind::kMatmul, NumberType::kFp16)->Has(product));
  EXPECT_EQ(SimumaxSeconds(again, product), SimumaxSeconds(c, product));
  // A file of ours may have these wrong in such a list.
  const auto error = [&](const char* from, const char* to) {
    const std::string changed = absl::StrReplaceAll(written, {{from, to}});
    EXPECT_NE(changed, written) << from;
    return std::string(ParseCluster(changed, "own.json").status().message());
  };
  EXPECT_THAT(error("\"input_gradient\"", "\"input\""),
              HasSubstr("own.json: device.rates.matmul.bf16.shapes.input: \"input\" is unknown"));
  EXPECT_THAT(error("4096,", "\"x\","), HasSubstr("must be rows of three sizes and Tflop/s"));
  EXPECT_THAT(error("4096,", "0,"), HasSubstr("shape 0: sizes must be from 1"));
}

TEST(SimumaxJson, ErrorsNameThePlace) {
  const auto error = [](const char* from, const char* to) {
    const std::string changed = absl::StrReplaceAll(kSimumaxSample, {{from, to}});
    EXPECT_NE(changed, kSimumaxSample) << from;
    return std::string(ParseCluster(changed, "box.json").status().message());
  };
  EXPECT_THAT(error("layout=TN", "layout=TT"),
              HasSubstr("layout must be TN, NN or NT, not \"TT\""));
  EXPECT_THAT(error("m=4096", "m=x"), HasSubstr("must have m= and a number from 1 to "));
  EXPECT_THAT(error("stage=fwd", "stage=all"),
              HasSubstr("stage must be fwd, bwd_grad_act or bwd_grad_w, not \"all\""));
  EXPECT_THAT(error("0.7,", "0,"),
              HasSubstr("out_dtype=bf16: must be above 0 and at most 10, not 0"));
  EXPECT_THAT(error("\"mem_gbs\"", "\"memory\""),
              HasSubstr("box.json: accelerator.mem_gbs: missing"));
  EXPECT_THAT(error("\"gbps\": 200", "\"gbps\": -1"),
              HasSubstr("networks.inter_node.bandwidth.gbps: must be above 0"));
  EXPECT_THAT(error("\"fixed_latency_us\": 20", "\"fixed_latency_us\": -2"),
              HasSubstr("all_gather.fixed_latency_us: must be from 0 to 100000, not -2"));
  EXPECT_THAT(error("\"num_per_node\": 4", "\"num_per_node\": 0"),
              HasSubstr("box.json: num_per_node: "));
  EXPECT_THAT(error("\"tflops\": 1000, \"efficient_factor\": 0.5, \"acc",
                    "\"tflops\": 1000, \"efficient_factor\": 11, \"acc"),
              HasSubstr("op.matmul.efficient_factor: must be from 0 to 10, not 11"));
}

}  // namespace
}  // namespace pipelab
