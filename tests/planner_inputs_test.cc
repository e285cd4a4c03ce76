// The inputs of other planners (PipeDream, Piper, dnn-partitioning), file by file: what is read is
// held to the text itself, searched without the readers, and becomes models that are partitioned
// and simulated. They are not part of the project: where they are absent, all is skipped.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/dnn_partitioning_json.h"
#include "models/files/layer_list_json.h"
#include "models/files/model_file.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kInputs[] = "planner-inputs";

std::string Folder() { return SharedDataFolder(kInputs); }

// Paths below the folder, sorted.
std::vector<std::string> Files(const std::vector<std::string>& folders,
                               const std::string& extension) {
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(JoinPath(Folder(), folder), error)) {
      const std::string name = entry.path().filename().string();
      if (absl::EndsWith(name, extension)) files.push_back(JoinPath(folder, name));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string TextOf(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(Folder(), file));
  EXPECT_THAT(text, IsOk());
  return text.value_or("");
}

// How often a word is in the text, and the sum of the numbers that follow it.
struct FoundText {
  int count = 0;
  double sum = 0;
};
FoundText Find(const std::string& text, const std::string& word) {
  FoundText found;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found.count;
    found.sum += std::strtod(text.c_str() + at + word.size(), nullptr);
  }
  return found;
}

template <typename Items, typename Number>
double SumOver(const Items& items, Number number) {
  double sum = 0;
  for (const auto& item : items) sum += number(item);
  return sum;
}

void ExpectSum(double expected, double sum) { EXPECT_NEAR(sum, expected, 1e-12 * expected); }

Nanoseconds TimeOf(const std::vector<Operation>& operations) {
  Nanoseconds sum;
  for (const Operation& o : operations) sum += o.time;
  return sum;
}

Nanoseconds TimeOf(const LayerSpec& layer) {
  const LayerOperations ops = layer.operations(1, TokenSlice());
  return TimeOf(ops.forward) + TimeOf(ops.backward_input) + TimeOf(ops.backward_weight);
}

// A flow shop of equal jobs: forwards of all micro-batches, then backwards.
Nanoseconds GpipeTime(const CostTable& costs, int micro_batches) {
  const auto flow = [&](const std::function<Nanoseconds(const StageCost&)>& of) {
    Nanoseconds sum, most;
    for (const StageCost& stage : costs.stages) {
      sum += of(stage);
      most = std::max(most, of(stage));
    }
    return sum + most * (micro_batches - 1);
  };
  return flow([](const StageCost& s) { return s.forward; }) +
         flow([](const StageCost& s) { return s.backward_input + s.backward_weight; });
}

bool HasChain(const StageGraph& stages) {
  int neighbours = 0;
  std::vector<bool> next(stages.num_stages());
  for (const StageGraph::Edge& e : stages.edges) {
    if (e.to == e.from + 1 && !next[e.from]) ++neighbours;
    if (e.to == e.from + 1) next[e.from] = true;
  }
  return neighbours == stages.num_stages() - 1;
}

// Partitioned by its times into ranges, and simulated.
void ExpectSimulates(const ModelGraph& graph, int stages) {
  constexpr int kMicroBatches = 6;
  std::vector<double> times;
  Nanoseconds all;
  for (const LayerSpec& layer : graph.layers) {
    times.push_back(static_cast<double>(TimeOf(layer).value()));
    all += TimeOf(layer);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> first, PartitionChain(times, stages));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition, MakeRangePartition(graph, first));
  StageCostOptions options;
  options.step_flops_per_parameter = 0;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable costs,
                               ComputeStageCosts(graph, partition, 1, options));
  SchemeParams sizes;
  sizes.devices = stages;
  sizes.micro_batches = kMicroBatches;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule("gpipe", sizes));
  schedule.stages = partition.stages;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
  const Nanoseconds chain = GpipeTime(costs, kMicroBatches);
  EXPECT_LE(trace.makespan, chain);
  // Stages that need not wait for their neighbour may begin earlier.
  if (HasChain(partition.stages)) {
    EXPECT_EQ(trace.makespan, chain);
  }
  EXPECT_GE(trace.makespan * stages, all * kMicroBatches);
  for (const DeviceTrace& device : trace.devices) EXPECT_GT(device.peak_activation, Bytes(0));
}

// As a model: the same times, parameters and layers, written and read back, and simulated.
void ExpectModel(const LayerList& list, double milliseconds, double parameter_bytes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "list"));
  EXPECT_THAT(Validate(graph), IsOk());
  EXPECT_EQ(graph.layers.size(), list.layers.size() + 1);  // and the loss
  const auto layers = static_cast<double>(list.layers.size());
  EXPECT_NEAR(SumOver(graph.layers, [](const LayerSpec& l) { return ToMilliseconds(TimeOf(l)); }),
              milliseconds, 2e-6 * layers);  // whole nanoseconds
  EXPECT_NEAR(static_cast<double>(graph.num_parameters()), parameter_bytes / 4, layers);
  const std::string text = LayerListToJson(list);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList again, ParseLayerList(text, "again"));
  EXPECT_EQ(LayerListToJson(again), text);
  for (int stages : {1, 2, 5}) ExpectSimulates(graph, stages);
}

// The times on one device that PipeDream's own planner found: "T1=0.672535".
double ReferenceSeconds(const std::string& file) {
  const std::string text = TextOf("reference_results.csv");
  const size_t line = text.find(absl::StrCat("\npipedream,", file, ","));
  return line == std::string::npos
             ? 0
             : Find(text.substr(line, text.find('\n', line + 1) - line), "T1=").sum;
}

TEST(PlannerInputs, PipeDreamProfiles) {
  if (Folder().empty()) GTEST_SKIP() << NoSharedData(kInputs);
  const std::vector<std::string> files = Files({"pipedream", "synthetic"}, ".txt");
  ASSERT_FALSE(files.empty());
  int references = 0;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string text = TextOf(file);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile p, ParsePipeDreamProfile(text, file));
    const FoundText forward = Find(text, "forward_compute_time="), edges = Find(text, "\n\t"),
                    backward = Find(text, "backward_compute_time="),
                    parameters = Find(text, "parameter_size="),
                    sizes = Find(text, "activation_size="), more = Find(text, "; "),
                    lists = Find(text, "activation_size=[");
    EXPECT_EQ(p.nodes.size(), forward.count);
    EXPECT_EQ(p.edges.size(), edges.count);
    const auto sum = [&](double PipeDreamNode::*field) {
      return SumOver(p.nodes, [&](const PipeDreamNode& n) { return n.*field; });
    };
    ExpectSum(forward.sum, sum(&PipeDreamNode::forward_ms));
    ExpectSum(backward.sum, sum(&PipeDreamNode::backward_ms));
    ExpectSum(parameters.sum, sum(&PipeDreamNode::parameter_bytes));
    // The first number of a list follows the bracket and the others a semicolon.
    ExpectSum(sizes.sum + lists.sum + more.sum,
              SumOver(p.nodes, [](const PipeDreamNode& n) { return n.TotalActivationBytes(); }));
    EXPECT_EQ(lists.count > 0, more.count > 0);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile again,
                                 ParsePipeDreamProfile(PipeDreamProfileToText(p), file));
    EXPECT_EQ(PipeDreamProfileToText(again), PipeDreamProfileToText(p));

    const PipeDreamProfile rest = WithoutInputs(p);
    const double ms =
        SumOver(rest.nodes, [](const PipeDreamNode& n) { return n.forward_ms + n.backward_ms; });
    if (const double seconds = ReferenceSeconds(file); seconds > 0) {
      EXPECT_NEAR(ms * 1e-3, seconds, 1e-5 * seconds);
      ++references;
    }
    ExpectModel(ToLayerList(rest, "model"), ms,
                SumOver(rest.nodes, [](const PipeDreamNode& n) { return n.parameter_bytes; }));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph found,
                                 FindModel("--model", JoinPath(Folder(), file)));
    EXPECT_EQ(found.layers.size(), rest.nodes.size() + 1);
  }
  EXPECT_GT(references, 5);
}

// The same value of every variant's field, from the text.
void ExpectVariantSums(const PiperProblem& p, const std::string& text) {
  const auto expect = [&](const std::string& key, double PiperVariant::*field) {
    double sum = 0;
    int count = 0;
    for (const PiperNode& node : p.nodes) {
      for (const auto& [degree, variants] : node.variants) {
        count += static_cast<int>(variants.size());
        sum += SumOver(variants, [&](const PiperVariant& v) { return v.*field; });
      }
    }
    const FoundText found = Find(text, absl::StrCat("\"", key, "\":"));
    EXPECT_EQ(count, found.count) << key;
    ExpectSum(found.sum, sum);
  };
  expect("timePerSample", &PiperVariant::time);
  expect("parameterSize", &PiperVariant::parameter_bytes);
  expect("memoryUsageA", &PiperVariant::in_flight_bytes);
  expect("memoryUsageB", &PiperVariant::fixed_bytes);
}

TEST(PlannerInputs, PiperProblems) {
  if (Folder().empty()) GTEST_SKIP() << NoSharedData(kInputs);
  const std::vector<std::string> files = Files({"piper", "synthetic"}, ".json");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string text = TextOf(file);
    const bool milliseconds = file == "piper/resnet.json";
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const PiperProblem p,
        ParsePiper(text, file,
                   milliseconds ? PiperTimeUnit::kMilliseconds : PiperTimeUnit::kSeconds));
    EXPECT_EQ(p.nodes.size(), Find(text, "\"TMPCs\":").count);
    const FoundText edges = Find(text, "\"communicationCost\":");
    EXPECT_EQ(p.edges.size(), edges.count);
    ExpectSum(edges.sum, SumOver(p.edges, [](const PiperEdge& e) { return e.bytes; }));
    EXPECT_EQ(p.memory_bytes, Find(text, "\"maxMemoryPerDevice\":").sum);
    EXPECT_EQ(p.devices, Find(text, "\"maxDevices\":").sum);
    EXPECT_EQ(p.bandwidth.value(), Find(text, "\"bandwidth\":").sum);
    EXPECT_EQ(p.micro_batches, Find(text, "\"mbsInBatch\":").sum);
    ExpectVariantSums(p, text);
    EXPECT_EQ(*ParseJson(PiperToJson(p), file), *ParseJson(text, file));

    PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList list, ToLayerList(p, "model", file));
    const auto sum = [&](double PiperVariant::*field) {
      return SumOver(p.nodes, [&](const PiperNode& n) { return PlainVariant(n)->*field; });
    };
    ExpectModel(list, p.Seconds(sum(&PiperVariant::time)) * 1e3,
                sum(&PiperVariant::parameter_bytes));
  }
}

TEST(PlannerInputs, PlacementProblems) {
  if (Folder().empty()) GTEST_SKIP() << NoSharedData(kInputs);
  const std::vector<std::string> files = Files({"dnn-partitioning"}, ".json");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string text = TextOf(file);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlacementProblem p, ParsePlacement(text, file));
    const auto found = [&](const std::string& key) {
      return Find(text, absl::StrCat("\"", key, "\":"));
    };
    EXPECT_EQ(p.nodes.size(), found("cpuLatency").count);
    EXPECT_EQ(p.edges.size(), found("destId").count);
    EXPECT_EQ(p.memory_bytes, found("maxSizePerFPGA").sum);
    EXPECT_EQ(p.accelerators, found("maxFPGAs").sum);
    EXPECT_EQ(p.cpus, found("maxCPUs").sum);
    const auto& nodes = p.nodes;
    ExpectSum(found("cpuLatency").sum, SumOver(nodes, [](const auto& n) { return n.cpu_ms; }));
    ExpectSum(found("fpgaLatency").sum,
              SumOver(nodes, [](const auto& n) { return n.accelerator_ms; }));
    ExpectSum(found("cost").sum, SumOver(p.edges, [](const auto& e) { return e.ms; }));
    ExpectSum(found("size").sum, SumOver(nodes, [](const auto& n) { return n.bytes; }) +
                                     SumOver(p.edges, [](const auto& e) { return *e.bytes; }));
    EXPECT_EQ(
        SumOver(nodes, [](const auto& n) { return n.is_backward; }),
        Find(text, "\"isBackwardNode\": true").count + Find(text, "\"isBackwardNode\": 1").count);
    EXPECT_EQ(SumOver(nodes, [](const auto& n) { return n.color_class.has_value(); }),
              found("colorClass").count);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlacementProblem again,
                                 ParsePlacement(PlacementToJson(p), file));
    EXPECT_EQ(PlacementToJson(again), PlacementToJson(p));
  }
}

}  // namespace
}  // namespace pipelab
