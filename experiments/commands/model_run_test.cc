#include "experiments/commands/model_run.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/layer_list.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// A chain of equal layers: 1 ms forward, 2 ms backward, 1 MB handed on and kept.
ModelGraph Equal(int layers) {
  LayerList list;
  list.name = "equal";
  for (int i = 0; i < layers; ++i) {
    ListedLayer layer;
    layer.name = absl::StrCat("l", i);
    if (i > 0) layer.inputs = {absl::StrCat("l", i - 1)};
    layer.costs = PassCosts<Nanoseconds>{{Nanoseconds(0), Milliseconds(1)},
                                         {Nanoseconds(0), Milliseconds(1)},
                                         {Nanoseconds(0), Milliseconds(1)}};
    layer.parameters = 1000;
    if (i + 1 < layers) layer.output = Bytes(1000000);
    list.layers.push_back(layer);
  }
  return *MakeGraph(list, "equal");
}

Schedule Made(const std::string& scheme, int devices, int micro_batches) {
  SchemeParams sizes;
  sizes.devices = devices;
  sizes.micro_batches = micro_batches;
  return *MakeSchedule(scheme, sizes);
}

ModelGraph Gpt() {
  GptConfig config;
  config.layers = 12;
  config.hidden = 256;
  config.heads = 4;
  config.tokens = 128;
  config.vocabulary = 1000;
  return *BuildGpt(config);
}

// Two layers a stage and three samples a micro-batch: (M + P - 1) 18 ms.
TEST(ModelRun, MeasuredModelsNeedNoCluster) {
  ModelRunOptions options;
  options.samples = 3;
  for (int p : {1, 2, 4}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PaperRun run,
                                 RunModelOnPaper(Equal(2 * p), Made("1f1b", p, 8), options));
    const Figures figures = FiguresOf(run);
    EXPECT_EQ(figures.makespan, 18.0 * (8 + p - 1));
    EXPECT_EQ(run.unit, "ms");
    for (int d = 0; d < p; ++d) {
      EXPECT_EQ(figures.devices[d].busy, 18.0 * 8);
      EXPECT_EQ(figures.devices[d].peak_state, Bytes(2000 * 4 * 4));
      EXPECT_GT(figures.devices[d].peak_activation, Bytes(0));
    }
  }
}

// Of one micro-batch there and back: the hops' latency and bytes come on top.
TEST(ModelRun, MessagesTakeTheClustersLinks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const Connection& link = cluster.levels[0].connection;
  ModelRunOptions options;
  options.cluster = cluster;
  const auto makespan = [&](NumberType type) {
    options.type = type;
    const absl::StatusOr<PaperRun> run = RunModelOnPaper(Equal(2), Made("gpipe", 2, 1), options);
    EXPECT_THAT(run, IsOk());
    const CostTable& costs = run->costs;
    EXPECT_GT(costs.stages[0].step, Nanoseconds(0));
    return FiguresOf(*run).makespan - ToMilliseconds(costs.stages[0].step);
  };
  for (const auto& [type, bytes] : {std::pair(NumberType::kTf32, 1e6), {NumberType::kBf16, 5e5}}) {
    const double hop =
        ToMilliseconds(link.latency.value) + bytes / link.bandwidth.value.value() * 1e3;
    EXPECT_NEAR(makespan(type), 6 + 2 * hop, 1e-4);
  }
}

TEST(ModelRun, StagesAreBalancedByTime) {
  LayerList list;
  for (int i = 0; i < 4; ++i) {
    ListedLayer layer;
    layer.name = absl::StrCat("l", i);
    if (i > 0) layer.inputs = {absl::StrCat("l", i - 1)};
    layer.costs = PassCosts<Nanoseconds>{{Nanoseconds(0), Milliseconds(i == 3 ? 6 : 1)}, {}, {}};
    if (i < 3) layer.output = Bytes(4);
    list.layers.push_back(layer);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "list"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PaperRun run, RunModelOnPaper(graph, Made("gpipe", 2, 1), {}));
  EXPECT_EQ(run.costs.stages[0].forward, Milliseconds(3));
  ModelRunOptions options;
  options.layout = "1,3";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PaperRun given,
                               RunModelOnPaper(graph, Made("gpipe", 2, 1), options));
  EXPECT_EQ(given.costs.stages[0].forward, Milliseconds(1));
}

// Stage times are the sums of the layers' on the machine, whatever the scheme.
TEST(ModelRun, FlopsBecomeTimesOnTheMachine) {
  const ModelGraph graph = Gpt();
  ModelRunOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "dgx1-v100"));
  options.type = NumberType::kFp16;
  options.samples = 2;
  Nanoseconds all;
  for (const LayerSpec& layer : graph.layers) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes t,
                                 TimesOf(layer, {options.cluster->device, NumberType::kFp16}, 2));
    all += t.forward + t.backward_input + t.backward_weight;
  }
  for (const Scheme& scheme : Catalog()) {
    SCOPED_TRACE(std::string(scheme.name));
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const PaperRun run, RunModelOnPaper(graph, Made(std::string(scheme.name), 4, 8), options));
    Nanoseconds stages;
    for (const StageCost& s : run.costs.stages) {
      stages += s.forward + s.backward_input + s.backward_weight;
    }
    EXPECT_EQ(stages, all);
    EXPECT_GE(FiguresOf(run).makespan * 4, ToMilliseconds(all) * 8);
  }
}

TEST(ModelRun, ErrorsNameTheOption) {
  const auto message = [](const ModelGraph& graph, const Schedule& schedule,
                          const ModelRunOptions& options) {
    return std::string(RunModelOnPaper(graph, schedule, options).status().message());
  };
  const ModelGraph gpt = Gpt();
  EXPECT_THAT(message(gpt, Made("gpipe", 2, 2), {}),
              HasSubstr("--cluster: missing, and layer \"embedding\" has flops"));
  ModelRunOptions options;
  options.samples = 0;
  EXPECT_EQ(message(Equal(2), Made("gpipe", 2, 2), options), "--samples=0: must be at least 1");
  options.samples = 1;
  EXPECT_EQ(
      message(Equal(2), Made("gpipe", 3, 2), options),
      "--devices and --chunks make 3 stages, but the model has 2 layers: a stage would be without "
      "layers; at most 2");
  options.layout = "2";
  EXPECT_EQ(message(Equal(2), Made("gpipe", 2, 2), options),
            "--layout=2: 1 stages, but the scheme has 2");
  options.layout = "";
  EXPECT_THAT(message(Equal(2), Made("terapipe", 2, 2), options), HasSubstr("takes whole samples"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.cluster, LoadCluster("--cluster", "tpu-v2"));
  options.type = NumberType::kFp16;
  EXPECT_THAT(message(gpt, Made("gpipe", 2, 2), options),
              HasSubstr("--cluster, --number_type: layer \""));
}

}  // namespace
}  // namespace pipelab
