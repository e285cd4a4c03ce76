#include "pipelines/cluster/cluster_json.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_files.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;

TEST(ClusterJson, WrittenClustersAreReadBack) {
  for (const EmbeddedText& file : ClusterFiles()) {
    SCOPED_TRACE(std::string(file.name));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, ParseCluster(file.text, "file"));
    const std::string text = ClusterToJson(cluster);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again, ParseCluster(text, "again"));
    EXPECT_EQ(ClusterToJson(again), text);
    EXPECT_EQ(again.device.memory.value, cluster.device.memory.value);
    EXPECT_EQ(again.levels.size(), cluster.levels.size());
    EXPECT_EQ(again.levels.back().connection.bandwidth.value,
              cluster.levels.back().connection.bandwidth.value);
  }
}

TEST(ClusterJson, WhoseKernelsAndTheirMemoryCurves) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec cluster, LoadCluster("--cluster", "summit"));
  EXPECT_FALSE(cluster.device.own_kernels);
  cluster.device.own_kernels = true;
  for (OperationKind kind : {OperationKind::kGelu, OperationKind::kOptimizer}) {
    cluster.device.memory_efficiency_of[kind] = {{{{1000, 0.25}, {2000, 0.375}}}, "measured"};
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again,
                               ParseCluster(ClusterToJson(cluster), "again"));
  EXPECT_TRUE(again.device.own_kernels);
  EXPECT_EQ(again.device.memory_efficiency_of.size(), 2);
  EXPECT_EQ(ClusterToJson(again), ClusterToJson(cluster));
}

TEST(Clusters, WithAnotherNumberOfNodes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec file, LoadCluster("--cluster", "dgx-h100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec more, LoadCluster("--cluster", "dgx-h100:2048"));
  EXPECT_EQ(more.max_devices(), 16384);
  file.levels.back().size = 2048;
  EXPECT_EQ(ClusterToJson(more), ClusterToJson(file));
  const auto refusal = [](const char* word) {
    return std::string(LoadCluster("--cluster", word).status().message());
  };
  for (const char* number :
       {"0", "-1", "many", "", "1048577", "0x8", "8x0", "8x", "x8", "8x1025", "8x4x2"}) {
    const std::string word = absl::StrCat("dgx-h100:", number);
    EXPECT_EQ(refusal(word.c_str()),
              absl::StrCat("--cluster=", word,
                           ": after the colon must be a number of nodes, 1 to 1048576, such as "
                           "64, or that and the devices of a node, 1 to 1024, such as 64x4"));
  }
  EXPECT_EQ(refusal("rtx4090-box:2"),
            "--cluster=rtx4090-box:2: rtx4090-box is one node; a number of nodes is for clusters "
            "whose nodes a network connects");
  EXPECT_THAT(refusal("tpu-v3:2"), testing::HasSubstr("tpu-v3 is one grid of devices"));
  EXPECT_THAT(refusal("dgx-h1000:2"), testing::HasSubstr("--cluster=dgx-h1000:2: no such cluster"));
}

TEST(Clusters, WithOtherNodes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec racks, LoadCluster("--cluster", "gb200-nvl72"));
  EXPECT_EQ(racks.levels[0].size, 64);
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec whole, LoadCluster("--cluster", "gb200-nvl72:5x72"));
  EXPECT_EQ(whole.max_devices(), 360);
  whole.levels[0].size = 64;
  whole.levels[1].size = racks.levels[1].size;
  EXPECT_EQ(ClusterToJson(whole), ClusterToJson(racks));
  for (const char* word : {"dgx1-v100:2x4", "summit:2x4"}) {
    EXPECT_THAT(std::string(LoadCluster("--cluster", word).status().message()),
                testing::HasSubstr("not all behind one switch"));
  }
}

TEST(ClusterJson, LaunchesAlignmentAndCollectivesAreReadBack) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec cluster, LoadCluster("--cluster", "tpu-v3"));
  EXPECT_FALSE(cluster.device.host_launch.has_value());
  cluster.device.host_launch = {Microseconds(40), "measured"};
  cluster.device.collective_overhead = {Microseconds(90), "fitted"};
  cluster.device.launch_gap = {Microseconds(40), "assumed"};
  cluster.device.step_set_up = {Milliseconds(85), "assumed"};
  cluster.device.product_alignment = {{{{1, 0.25}, {8, 1}}}, "read"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again,
                               ParseCluster(ClusterToJson(cluster), "again"));
  EXPECT_EQ(again.device.host_launch->value, Microseconds(40));
  EXPECT_EQ(again.device.collective_overhead->value, Microseconds(90));
  EXPECT_EQ(again.device.launch_gap->value, Microseconds(40));
  EXPECT_EQ(again.device.step_set_up->value, Milliseconds(85));
  EXPECT_EQ(LaunchGap(again.device), Microseconds(40));
  ClusterSpec without = again;
  without.device.launch_gap.reset();
  EXPECT_EQ(LaunchGap(without.device), without.device.host_launch.has_value()
                                           ? without.device.host_launch->value
                                           : Nanoseconds(0));
  ASSERT_EQ(again.device.product_alignment->value.points.size(), 2);
  EXPECT_EQ(again.device.product_alignment->value.points[1].numbers, 8);
  EXPECT_EQ(ClusterToJson(again), ClusterToJson(cluster));
}

TEST(ClusterJson, HostLinks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  cluster.host_link = {{BytesPerSecond(12e9), "measured"}, 2};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again,
                               ParseCluster(ClusterToJson(cluster), "again"));
  EXPECT_EQ(again.host_link->Share().value(), 6e9);
  EXPECT_EQ(again.host_link->bandwidth.source, "measured");
  EXPECT_EQ(ClusterToJson(again), ClusterToJson(cluster));
}

// The template with one change, which must be refused with this message.
void Refuses(const std::function<void(json&)>& change, const std::string& message) {
  const absl::Span<const EmbeddedText> files = ClusterFiles();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [](const EmbeddedText& f) { return f.name == "template"; });
  ASSERT_NE(file, files.end());
  json root = *ParseJson(file->text, "template");
  change(root);
  const absl::StatusOr<ClusterSpec> cluster = ParseCluster(DumpJson(root), "a.json");
  ASSERT_FALSE(cluster.ok()) << message;
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(cluster.status().message()), absl::StrCat("a.json: ", message));
}

json Ring(int ranks) {
  const json latency = {{"value", "10 us"}, {"source", "test"}};
  const json bandwidth = {{"value", "5 GB/s"}, {"source", "test"}};
  return {{"ranks", ranks}, {"latency", latency}, {"bandwidth", bandwidth}};
}

TEST(ClusterJson, ErrorsOfRings) {
  const auto rings = [](const json& rings) {
    return [rings](json& j) { j["levels"][1]["ring"] = rings; };
  };
  Refuses(rings(json::array({Ring(8), Ring(8)})),
          "levels[1].ring[1].ranks: must be at least 9 and at most 1048576, not 8");
  Refuses(rings(json::array({Ring(1)})),
          "levels[1].ring[0].ranks: 1: must be a whole number from 2 to 1048576");
  Refuses(rings(Ring(8)),
          "levels[1].ring.ranks: unknown; known here: latency, bandwidth, all_reduce, all_to_all");
  json other = Ring(8);
  other["all_reduce"] = {{"value", "0 GB/s"}, {"source", "test"}};
  Refuses(rings(json::array({other})),
          "levels[1].ring[0].all_reduce.value: \"0 GB/s\": must be from 1 MB/s to 1 EB/s");
}

TEST(ClusterJson, ErrorsOfLaunchesAndAlignment) {
  const json quantity = {{"value", "-1 us"}, {"source", "test"}};
  Refuses([&](json& j) { j["device"]["host_launch"] = quantity; },
          "device.host_launch.value: \"-1 us\": must be finite and not negative, such as \"5 us\"");
  Refuses(
      [&](json& j) {
        j["device"]["collective_overhead"] = {{"value", "1 us"}, {"origin", "test"}};
      },
      "device.collective_overhead.origin: unknown; known here: value, source");
  const auto points = [](json points) {
    return [points](json& j) {
      j["device"]["product_alignment"] = {{"points", points}, {"source", "test"}};
    };
  };
  const std::string place = "device.product_alignment.points";
  Refuses(points(json::array({json::array({"8", 1})})),
          place + "[0]: must be a whole number and a share, such as [8, 1]");
  Refuses(points(json::array({json::array({8, 1})})),
          place +
              ": point 0: numbers must begin at 1, each a multiple of the "
              "one before and above it");
  Refuses(points(json::array({json::array({1, 0.5})})), place + ": the last share must be 1");
}

TEST(ClusterJson, ErrorsNameFileKeyAndReason) {
  Refuses(
      [](json& j) {
        j["host_link"] = {{"bandwidth", "0 B/s"}};
      },
      "host_link.bandwidth: \"0 B/s\": must be from 1 MB/s to 1 EB/s");
  Refuses(
      [](json& j) {
        j["host_link"] = {{"bandwidth", "12 GB/s"}, {"devices", 0}};
      },
      "host_link.devices: 0: must be a whole number from 1 to 1024");
  Refuses([](json& j) { j["levels"] = json(17, j["levels"][0]); },
          "levels: must be at most 16, not 17");
  Refuses([](json& j) { j["colour"] = "red"; },
          "colour: unknown; known here: name, title, device, levels, "
          "host_link, collectives_at_wait");
  Refuses([](json& j) { j["device"].erase("arithmetic"); },
          "device.arithmetic: missing; with \"class\": \"gpu\" or \"tpu\" it is assumed");
  Refuses([](json& j) { j["device"]["class"] = "gpus"; },
          "device.class: \"gpus\" is unknown; did you mean gpu?");
  Refuses([](json& j) { j["device"]["memory"]["value"] = "16"; },
          "device.memory.value: \"16\": the unit is missing; must be a number and a unit, such as "
          "\"16 GiB\"");
  Refuses([](json& j) { j["device"]["memory"]["value"] = 16; },
          "device.memory.value: 16: must be a string");
  Refuses([](json& j) { j["device"]["memory"]["source"] = ""; },
          "device.memory.source: must not be empty");
  Refuses([](json& j) { j["device"]["memory"] = 16; }, "device.memory: 16: must be a string");
  Refuses([](json& j) { j["device"]["memory_bandwidth"]["value"] = "-1 GB/s"; },
          "device.memory_bandwidth.value: \"-1 GB/s\": must be finite and not negative, such as "
          "\"25 GB/s\"");
  Refuses([](json& j) { j["device"]["memory_bandwidth"]["value"] = "0 GB/s"; },
          "device.memory_bandwidth.value: \"0 GB/s\": must be from 1 MB/s to 1 EB/s");
  Refuses(
      [](json& j) {
        j["device"]["peaks"]["int4"] = {{"value", "1 Tflop/s"}, {"source", "s"}};
      },
      "device.peaks.int4: \"int4\" is unknown; there are fp32, tf32, bf16, fp16, fp8");
  Refuses([](json& j) { j["device"]["peaks"] = json::object(); },
          "device.peaks: must have a number type");
  Refuses([](json& j) { j["device"]["arithmetic"]["matmul"]["points"] = json::array(); },
          "device.arithmetic.matmul.points: must have a point");
  Refuses([](json& j) { j["device"]["arithmetic"]["matmul"]["points"][0] = 3; },
          "device.arithmetic.matmul.points[0]: must be a size and a share of the peak, such as "
          "[\"1 Mflop\", 0.5]");
  Refuses([](json& j) { j["device"]["arithmetic"]["matmul"]["points"][1][0] = "1 MB"; },
          "device.arithmetic.matmul.points[1]: \"1 MB\": \"MB\" is not a unit here; must be a "
          "number and a unit, such as \"2.5 Gflop\"");
  Refuses([](json& j) { j["device"]["arithmetic"]["matmul"]["points"][7][1] = 1.25; },
          "device.arithmetic.matmul.points: point 7: the share must be above 0 and at most 1, not "
          "1.25");
  Refuses([](json& j) { j["device"]["kernels"] = "theirs"; },
          "device.kernels: \"theirs\": must be \"pipelab\", or not be there for any other's");
  Refuses([](json& j) { j["levels"] = json::array(); }, "levels: must have one");
  Refuses([](json& j) { j["levels"][1]["size"] = 1.5; },
          "levels[1].size: 1.5: must be a whole number from 1 to 1048576");
  Refuses([](json& j) { j["levels"][0]["sharing"] = "bus"; },
          "levels[0].sharing: \"bus\" is unknown; there are pair, device, unit, mesh, torus");
  Refuses(
      [](json& j) {
        j["levels"][0]["shape"] = {2, 2};
      },
      "levels[0].shape: only a mesh or torus has one");
  Refuses([](json& j) { j["levels"][0]["latency"]["value"] = "1 GB"; },
          "levels[0].latency.value: \"1 GB\": \"GB\" is not a unit here; must be a number and a "
          "unit, such as \"5 us\"");
  Refuses(
      [](json& j) {
        j["levels"][0]["through"] = {{"name", "host"}, {"speed", 1}};
      },
      "3 faults: levels[0].through.speed: unknown; known here: name, latency, bandwidth; "
      "levels[0].through.latency: missing; levels[0].through.bandwidth: missing");
}

// One round of mending is enough, from nothing.
TEST(ClusterJson, AllFaultsAreToldAtOnce) {
  EXPECT_EQ(ParseCluster("{}", "a.json").status().message(),
            "a.json: 3 faults: name: missing; device: missing, such as {\"class\": \"gpu\", "
            "\"peaks\": {\"fp32\": \"80 TFLOPS\"}, \"memory\": \"24 GB\", "
            "\"memory_bandwidth\": \"1 TB/s\"}; levels: missing, such as [{\"size\": 8, "
            "\"sharing\": \"device\", \"bandwidth\": \"25 GB/s\"}]");
  Refuses(
      [](json& j) {
        j["device"]["memory"] = "24";
        j["device"]["peaks"]["int4"] = "1 TFLOPS";
        j["levels"][1]["sharing"] = "bus";
        j["colour"] = "red";
      },
      "4 faults: colour: unknown; known here: name, title, device, levels, host_link, "
      "collectives_at_wait; "
      "device.peaks.int4: \"int4\" is unknown; there are fp32, tf32, bf16, fp16, fp8; "
      "device.memory: \"24\": the unit is missing; must be a number and a unit, such as "
      "\"16 GiB\"; levels[1].sharing: \"bus\" is unknown; there are pair, device, unit, mesh, "
      "torus");
}

constexpr char kEightCards[] = R"({
  "name": "eight 4090s",
  "device": {
    "class": "gpu",
    "peaks": {"fp32": "82.6 TFLOPS", "bf16": "165 TFLOPS"},
    "memory": "24 GB",
    "memory_bandwidth": "1008 GB/s"
  },
  "levels": [{"size": 8, "sharing": "device", "bandwidth": "25 GB/s"}]
})";

TEST(ClusterJson, TenLinesAreEnough) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, ParseCluster(kEightCards, "a.json"));
  EXPECT_EQ(cluster.max_devices(), 8);
  EXPECT_EQ(cluster.device.name, "eight 4090s");
  EXPECT_EQ(cluster.device.memory.value, Bytes(24000000000));
  EXPECT_EQ(cluster.device.memory.source, "not given");
  EXPECT_EQ(cluster.levels[0].connection.latency.value, Microseconds(10));
  EXPECT_TRUE(cluster.device.calibrated.empty());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again,
                               ParseCluster(ClusterToJson(cluster), "again"));
  EXPECT_EQ(ClusterToJson(again), ClusterToJson(cluster));
}

// A class assumes what the files assume of their devices: half of 0.85 at 5 us of the peak.
TEST(ClusterJson, AClassHasTheTemplatesEfficiencies) {
  const absl::Span<const EmbeddedText> files = ClusterFiles();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [](const EmbeddedText& f) { return f.name == "template"; });
  ASSERT_NE(file, files.end());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec full, ParseCluster(file->text, "template"));
  json root = *ParseJson(file->text, "template");
  for (const char* key : {"launch_overhead", "arithmetic", "memory_efficiency"}) {
    root["device"].erase(key);
  }
  root["device"]["class"] = "gpu";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec filled, ParseCluster(DumpJson(root), "class"));
  EXPECT_EQ(filled.device.launch_overhead.value, full.device.launch_overhead.value);
  EXPECT_EQ(filled.device.host_launch->value, Nanoseconds(56200));
  for (const auto& [kind, curve] : full.device.arithmetic) {
    for (const double flops : {1e7, 1e9, 2e10, 1e12}) {
      EXPECT_NEAR(filled.device.arithmetic.at(kind).value.At(flops), curve.value.At(flops), 0.005);
    }
  }
  EXPECT_NEAR(filled.device.memory_efficiency.value.At(7.5e6), 0.4, 0.001);
}

// What was mistyped would rank configurations by times that are none, or without end.
TEST(ClusterJson, ValuesThatNoMachineHasAreRefused) {
  const auto set = [](const char* text, auto place) {
    return [text, place](json& j) { place(j)["value"] = text; };
  };
  Refuses(set("1 B/s", [](json& j) -> json& { return j["device"]["memory_bandwidth"]; }),
          "device.memory_bandwidth.value: \"1 B/s\": must be from 1 MB/s to 1 EB/s");
  Refuses(set("16 B", [](json& j) -> json& { return j["device"]["memory"]; }),
          "device.memory.value: \"16 B\": must be from 1 MiB to 1 PiB");
  Refuses(set("19 flop/s", [](json& j) -> json& { return j["device"]["peaks"]["fp32"]; }),
          "device.peaks.fp32.value: \"19 flop/s\": must be from 1 Mflop/s to 1 Eflop/s");
  Refuses(set("5 s", [](json& j) -> json& { return j["device"]["launch_overhead"]; }),
          "device.launch_overhead.value: \"5 s\": must be from 0 s to 1 s");
  Refuses(set("1 B/s", [](json& j) -> json& { return j["levels"][1]["bandwidth"]; }),
          "levels[1].bandwidth.value: \"1 B/s\": must be from 1 MB/s to 1 EB/s");
}

TEST(ClusterJson, SaysWhetherItIsCalibrated) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec a100, LoadCluster("--cluster", "dgx-a100"));
  EXPECT_EQ(CalibrationWarning(a100), "");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec again, ParseCluster(ClusterToJson(a100), "again"));
  EXPECT_EQ(again.device.calibrated, a100.device.calibrated);
  a100.device.calibrated.clear();
  EXPECT_EQ(
      CalibrationWarning(a100),
      "dgx-a100: efficiencies are assumed, not calibrated to runs; compare its times with one "
      "another, not with a clock");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec h100, LoadCluster("--cluster", "dgx-h100"));
  EXPECT_EQ(
      CalibrationWarning(h100),
      "dgx-h100: rates of products and attention are measured (h100-sxm), all else is assumed; "
      "published runs reach 42 to 49 % of an H100's bf16 peak (Megatron-Core 0.8, GPT of 2B to "
      "462B)");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec same, ParseCluster(ClusterToJson(h100), "same"));
  EXPECT_EQ(CalibrationWarning(same), CalibrationWarning(h100));
}

TEST(ClusterJson, ARangeOfEfficienciesThatWereNotCalibrated) {
  const auto of = [](const char* name) { return LoadCluster("--cluster", name).value(); };
  EXPECT_EQ(EfficiencyRangeOf(of("dgx-a100")).worst, 1);  // calibrated
  EXPECT_EQ(EfficiencyRangeOf(of("dgx1-v100")).worst, kAssumedRange.worst);
  const ClusterSpec h100 = of("dgx-h100");
  const EfficiencyRange range = EfficiencyRangeOf(h100);
  EXPECT_LT(range.worst, 1);
  EXPECT_GT(range.best, 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec same, ParseCluster(ClusterToJson(h100), "same"));
  EXPECT_EQ(EfficiencyRangeOf(same).worst, range.worst);
  const Operation product = MatmulOperation(4096, 4096, 4096);
  const auto time = [&](const ClusterSpec& c) {
    return OperationTime(c.device, NumberType::kBf16, product).value();
  };
  EXPECT_GT(time(WithEfficiency(h100, range.worst)), time(h100));
  EXPECT_LT(time(WithEfficiency(h100, range.best)), time(h100));
  EXPECT_EQ(time(WithEfficiency(h100, 1)), time(h100));
  EXPECT_THAT(CheckCluster(WithEfficiency(h100, 5)), IsOk());  // no share is above 1
}

// Launches and calls are the host's and its framework's: one default for A100s and later (with
// other calls where NCCL's rings are measured), another for V100s; TPUs, P40s and P100s ran
// compiled graphs and have none.
TEST(Catalog, GpusHaveOneRuleForTheHost) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec a100, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec h100, LoadCluster("--cluster", "dgx-h100"));
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, LoadCluster("--cluster", name));
    const bool compiled = name == "p100-pcie" || name == "p40-pcie" || name.substr(0, 3) == "tpu";
    const bool gpu = name != "template" && !compiled;
    ASSERT_EQ(c.device.host_launch.has_value(), gpu) << name;
    ASSERT_EQ(c.device.collective_overhead.has_value(), gpu) << name;
    // Catalog.MachinesOfV100sAgree (cluster_test.cc) has the V100s' own.
    const bool v100 = c.device.name.substr(0, 10) == "Tesla V100";
    EXPECT_EQ(v100, gpu && c.device.host_launch->value != a100.device.host_launch->value) << name;
    if (!gpu || v100) continue;
    EXPECT_EQ(c.device.host_launch->value, a100.device.host_launch->value) << name;
    // NCCL's measured rings have their calls, of which the host's part is apart.
    const bool rings = c.device.collective_launch.has_value();
    EXPECT_EQ(rings, c.device.rates != nullptr) << name;
    const ClusterSpec& alike = rings ? h100 : a100;
    EXPECT_EQ(c.device.collective_overhead->value, alike.device.collective_overhead->value) << name;
    if (name == "dgx-a100") continue;
    EXPECT_EQ(c.device.host_launch->source.substr(0, 9), "assumed: ") << name;
    if (rings) continue;
    EXPECT_EQ(c.device.collective_overhead->source, c.device.host_launch->source) << name;
  }
}

TEST(ClusterJson, WhatIsNoJsonIsSaid) {
  EXPECT_THAT(std::string(ParseCluster("{", "a.json").status().message()),
              testing::StartsWith("a.json:1:2: not JSON"));
  EXPECT_EQ(std::string(ParseCluster("[]", "a.json").status().message()),
            "a.json: []: must be an object");
}

TEST(Catalog, FilesOfTheUsersOwn) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec summit, LoadCluster("--cluster", "summit"));
  const std::string path = absl::StrCat(testing::TempDir(), "/own.json");
  ASSERT_THAT(WriteFileAtomically(path, ClusterToJson(summit)), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec own, LoadCluster("--cluster", path));
  EXPECT_EQ(ClusterToJson(own), ClusterToJson(summit));
  const std::string missing = absl::StrCat(testing::TempDir(), "/none.json");
  EXPECT_THAT(std::string(LoadCluster("--cluster", missing).status().message()),
              testing::StartsWith(absl::StrCat("--cluster=", missing, ": ")));
}

TEST(Catalog, LoadsAListOfClusters) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<ClusterSpec> two,
                               LoadClusters("--clusters", "summit,,dgx-a100"));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "summit");
  EXPECT_EQ(two[1].name, "dgx-a100");
  EXPECT_EQ(LoadClusters("--clusters", ",").status().message(), "--clusters=: must name one");
  EXPECT_THAT(std::string(LoadClusters("--clusters", "summit,sumit").status().message()),
              testing::HasSubstr("--clusters=sumit: no such cluster"));
}

// A source that holds for many values is copied to each of them.
TEST(ClusterJson, InheritedSourcesAreBounded) {
  const std::string source(1 << 20, 's');
  std::string levels;
  for (int i = 0; i < 5000; ++i) levels += R"(,{"a":"b"})";
  for (const std::string& text :
       {absl::StrCat(R"({"source":")", source, R"(","levels":[{})", levels, "]}"),
        absl::StrCat(R"({"device":{"source":")", source,
                     R"(","a":"b","c":"d","e":"f","g":"h","i":"j"}})"),
        absl::StrCat(R"({"levels":[{"source":")", source,
                     R"(","ring":[{},{},{},{},{},{}]}],"device":{}})")}) {
    EXPECT_THAT(
        std::string(ParseCluster(text, "f.json").status().message()),
        testing::HasSubstr("f.json: source: those that hold for many values take more than"));
  }
}

TEST(LoadCluster, UnitsAreBoundedAsFilesAre) {
  EXPECT_THAT(std::string(LoadCluster("--cluster", "dgx-h100:1048576x1024").status().message()),
              testing::HasSubstr(
                  "--cluster=dgx-h100:1048576x1024: levels[1].size: makes more than 1048576"));
}

}  // namespace
}  // namespace pipelab
