// From a configuration's text to its prediction, on one core: Llama-3 405B on 16,384 GPUs, with the
// copies of a stage that two stand for, and with every pipeline, context and data rank on its own:
// 2,048 devices of the program, since tensor-parallel groups are part of the costs.
//
//   bazel run -c opt //pipelines/step:step_benchmark
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// range(0): micro-batches; range(1): whether two copies stand for all.
void BM_Llama405bOn16384Gpus(benchmark::State& state) {
  const ClusterSpec cluster = LoadCluster("--cluster", "dgx-h100:2048").value();
  const GroupedModel model =
      GroupByName(MegatronGraph(BuildPublished("llama-3-405b").value(),
                                AttentionImplementation::kFused, NarrowestType(cluster.device)));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NarrowestType(cluster.device);
  on.fold_data = state.range(1) != 0;
  const std::string text =
      absl::StrCat("1f1b:P=16,T=8,C=16,D=8,M=", state.range(0), ",sharding=optimizer,sequence");
  double seconds = 0, devices = 0;
  for (auto _ : state) {
    const StepConfig config = ParseStepConfig("config", text).value();
    absl::StatusOr<Step> step = BuildStep(on, config);
    CHECK(step.ok()) << step.status();
    devices = step->program.schedule.num_devices();
    const absl::StatusOr<StepPrediction> p = SimulateStep(*std::move(step));
    CHECK(p.ok()) << p.status();
    seconds = ToSeconds(p->step_time);
  }
  state.counters["step_s"] = seconds;
  state.counters["devices"] = devices;
}

BENCHMARK(BM_Llama405bOn16384Gpus)
    ->ArgsProduct({{32, 128}, {1, 0}})
    ->ArgNames({"M", "folded"})
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

}  // namespace
}  // namespace pipelab
