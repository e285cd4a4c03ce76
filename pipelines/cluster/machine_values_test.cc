#include "pipelines/cluster/machine_values.h"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_json.h"
#include "pipelines/cluster/default_files.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/cluster/kernel_rates_json.h"
#include "pipelines/cluster/rate_files.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// These keys name a machine for people and programs, or are numbers of units, which make it that
// one.
bool IsNoQuantity(const std::string& key) {
  for (const char* k : {"name", "title", "sharing", "size", "shape", "ranks", "devices", "kernels",
                        "calibrated", "published", "collectives_at_wait"}) {
    if (key == k) return true;
  }
  return false;
}

// Every value below `place` must be in an object with a source; adds place and source of each.
void FindSources(const std::string& place, const json& node,
                 std::map<std::string, std::string>* sources) {
  if (node.is_object() && node.contains("source")) {
    (*sources)[place] = node["source"].get<std::string>();
  } else if (node.is_object()) {
    for (const auto& [key, field] : node.items()) {
      if (IsNoQuantity(key)) continue;
      FindSources(place.empty() ? key : absl::StrCat(place, ".", key), field, sources);
    }
  } else if (node.is_array()) {
    for (size_t i = 0; i < node.size(); ++i) {
      FindSources(absl::StrCat(place, "[", i, "]"), node[i], sources);
    }
  } else {
    ADD_FAILURE() << place << ": " << node << " has no source";
  }
}

std::map<std::string, std::string> SourcesIn(const ClusterSpec& cluster) {
  json file = ParseJson(ClusterToJson(cluster), "written").value();
  if (cluster.device.rates != nullptr) {
    KernelRates rates = *cluster.device.rates;
    rates.name.clear();  // so that the tables are written
    file["device"]["rates"] = KernelRatesToJson(rates);
  }
  std::map<std::string, std::string> sources;
  FindSources("", file, &sources);
  return sources;
}

TEST(MachineValues, EveryValueOfTheCatalogueSaysItsOriginAndSource) {
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    std::map<std::string, std::string> told;
    for (const MachineValue& v : ValuesOf(cluster)) {
      EXPECT_TRUE(told.emplace(v.place, v.source).second) << name << ": " << v.place << " twice";
      EXPECT_NE(v.text, "") << name << ": " << v.place;
      EXPECT_NE(OriginOf(v.source).name, "not given")
          << name << ": " << v.place << ": " << v.source;
    }
    for (const auto& [place, source] : SourcesIn(cluster)) {
      EXPECT_EQ(told[place], source) << name << ": " << place;
    }
  }
}

// Values that several files would repeat are in defaults and shared_rates.json.
TEST(MachineValues, TablesAndDefaultsAreOfMachines) {
  std::map<std::string, int> machines;
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    if (cluster.device.rates == nullptr) continue;
    ++machines[cluster.device.rates->name];
    EXPECT_TRUE(cluster.device.rates->sustained.has_value()) << name;
  }
  for (const EmbeddedText& file : RateFiles()) {
    EXPECT_GT(machines[std::string(file.name)], 0) << file.name;
    EXPECT_FALSE(absl::StrContains(file.text, "sustained")) << file.name;
  }
  EXPECT_FALSE(DefaultFiles().empty());
}

TEST(MachineValues, OriginsAreWordsBeforeAColon) {
  EXPECT_EQ(OriginOf("published: data sheet, dense").name, "published");
  EXPECT_EQ(OriginOf("published: data sheet, dense").words, "data sheet, dense");
  EXPECT_EQ(OriginOf("data sheet").name, "not given");
  EXPECT_EQ(OriginOf("measured").name, "not given");
  EXPECT_EQ(OriginOf("assumed: ").name, "not given");
}

TEST(MachineValues, WhatTablesLackSaysItsFormula) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-b200"));
  std::map<std::string, MachineValue> values;
  for (const MachineValue& v : ValuesOf(cluster)) values[v.place] = v;
  EXPECT_THAT(values["device.rates.matmul.tf32"].source,
              HasSubstr("assumed: flops / (peaks.tf32 x the share of arithmetic.matmul"));
  EXPECT_THAT(values["device.rates.attention.fp16"].source, HasSubstr("the rates of bf16"));
  EXPECT_THAT(values["device.rates.matmul.fp8"].source, HasSubstr("measured: "));
  EXPECT_EQ(values["device.launch_gap"].text, "56.2 us");
  EXPECT_EQ(values["device.memory_efficiency"].text, "0.797, half at 37.9 MiB");
}

// An object's source holds for what is in it; the device's defaults are below what the file says.
constexpr char kShared[] = R"({
  "name": "shared", "device": {"defaults": "v100", "name": "card", "source": "published: sheet",
    "memory": "16 GB", "memory_bandwidth": {"value": "1 TB/s", "source": "measured: here"}},
  "levels": [{"size": 8, "sharing": "device", "source": "assumed: all",
              "bandwidth": "25 GB/s",
              "ring": [{"ranks": 2, "latency": "5 us", "bandwidth": "9 GB/s"}]}]
})";

TEST(MachineValues, SourcesAndDefaultsAreStatedOnce) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec c, ParseCluster(kShared, "a.json"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec v100, LoadCluster("--cluster", "dgx1-v100"));
  EXPECT_EQ(c.device.name, "card");
  EXPECT_EQ(c.device.memory.source, "published: sheet");
  EXPECT_EQ(c.device.memory_bandwidth.source, "measured: here");
  EXPECT_EQ(c.levels[0].rings[0].connection.latency.source, "assumed: all");
  EXPECT_EQ(c.device.host_launch->value, v100.device.host_launch->value);
  EXPECT_EQ(c.device.host_launch->source, v100.device.host_launch->source);
  const std::string unknown = absl::StrReplaceAll(kShared, {{"\"v100\"", "\"v10\""}});
  EXPECT_EQ(std::string(ParseCluster(unknown, "a.json").status().message()),
            "a.json: device.defaults: \"v10\" is unknown; did you mean v100?");
}

}  // namespace
}  // namespace pipelab
