// A model on a cluster: times and memory of every stage from the model's layers and the machine's
// specification, and a step under each synchronous scheme. Nothing is allocated or run.
//
//   tools/bazel run //experiments/examples:model_on_cluster
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/published.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Ranges of layers, the longest of which takes the least time.
absl::StatusOr<ModelPartition> Cut(const ModelGraph& graph, const Machine& machine, int stages) {
  std::vector<double> seconds;
  for (const LayerSpec& layer : graph.layers) {
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes t, TimesOf(layer, machine, /*samples=*/1));
    seconds.push_back(ToSeconds(t.forward + t.backward_input + t.backward_weight));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first, PartitionChain(seconds, stages));
  return MakeRangePartition(graph, first);
}

absl::Status Print(const Scheme& scheme, const ModelGraph& graph, const ClusterSpec& cluster) {
  const Machine machine = {cluster.device, NumberType::kBf16};
  SchemeParams sizes;
  sizes.devices = 8;
  sizes.micro_batches = 32;
  absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, sizes);
  if (!schedule.ok()) return absl::OkStatus();  // not every scheme serves every size
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           Cut(graph, machine, schedule->num_stages()));
  StageCostOptions options;
  options.machine = machine;
  PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(graph, partition, 1, options));
  PIPELAB_ASSIGN_OR_RETURN(costs.network, MakeNetwork(cluster, schedule->num_devices()));
  LoweringOptions lowering;
  lowering.ties = StageTies(graph, partition);  // embeddings that first and last stage share
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(*std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis figures, Analyze(trace));
  Bytes fullest;
  for (const DeviceTrace& d : trace.devices) {
    fullest = std::max(fullest, d.peak_activation + d.peak_state);
  }
  std::printf("%-17s %9s %8.1f %% %8.1f GiB\n", std::string(scheme.name).c_str(),
              ToString(trace.makespan).c_str(), 100 * figures.overall.bubble,
              static_cast<double>(fullest.value()) / (1 << 30));
  return absl::OkStatus();
}

absl::Status Run() {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildPublished("gpt-6.6b"));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  std::printf("%s on %s, 8 devices, 32 samples\n", graph.name.c_str(), cluster.name.c_str());
  std::printf("%-17s %9s %10s %12s\n", "scheme", "step", "bubble", "fullest");
  for (const Scheme& scheme : Catalog()) {
    if (scheme.asynchronous || scheme.options & kTokenSlices) continue;
    PIPELAB_RETURN_IF_ERROR(Print(scheme, graph, cluster));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
