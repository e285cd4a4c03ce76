#include "experiments/graph_split/split_epochs.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMembers = 4;

class Simulation {
 public:
  Simulation(const ScaledGraph& graph, const GraphMachine& machine, int batches)
      : graph_(graph), machine_(machine), batches_(batches) {}

  absl::Status Partition(PartitionMethod method) {
    PIPELAB_ASSIGN_OR_RETURN(
        owners_, MakePartition(method, graph_.graph, graph_.samples, kMembers, /*seed=*/1));
    return absl::OkStatus();
  }

  absl::StatusOr<GraphEpochRow> Row(GraphSystem system, bool attends, int hosts,
                                    int64_t cache_bytes, bool repeat) const {
    const RealGraph& real = graph_.real;
    GraphSetUp set_up;
    set_up.graph = &graph_.graph;
    set_up.system = system;
    set_up.hosts = hosts;
    set_up.members = kMembers;
    set_up.fanouts = real.fanouts;
    set_up.width = real.width;
    set_up.classes = real.classes;
    set_up.heads = attends ? 4 : 0;
    set_up.cache_bytes = cache_bytes / graph_.scale;
    set_up.repeat_hottest = repeat;
    PIPELAB_ASSIGN_OR_RETURN(const auto counter,
                             GraphCounter::Make(set_up, graph_.samples.inputs_V, owners_));
    GraphEpochRow row;
    row.graph = real.name;
    row.model = attends ? "gat" : "sage";
    row.system = system;
    row.hosts = hosts;
    for (int b = 0; b < batches_; ++b) {
      GraphStep step;
      for (int i = 0; i < graph_.scale; ++i) {
        const int64_t number = static_cast<int64_t>(b) * graph_.scale + i;
        Add(counter->Count(number, graph_.BatchOf(number)), &step);
      }
      PIPELAB_RETURN_IF_ERROR(AddStep(step, set_up, &row));
    }
    return row;
  }

 private:
  // A batch's share of the row's means.
  absl::Status AddStep(const GraphStep& step, const GraphSetUp& set_up, GraphEpochRow* row) const {
    PIPELAB_ASSIGN_OR_RETURN(const GraphStepTime time, TimeOfStep(step, set_up, machine_));
    const double of_epoch = static_cast<double>(graph_.real.steps()) / batches_;
    row->sample += ToSeconds(time.sample) * of_epoch;
    row->load += ToSeconds(time.load) * of_epoch;
    row->train += ToSeconds(time.train) * of_epoch;
    row->exchange += ToSeconds(time.exchange) * of_epoch;
    int64_t host = 0, peer = 0;
    for (const GraphWork& m : step.members) host += m.host_rows, peer += m.peer_rows;
    const auto all = static_cast<double>(step.rows() * step.first_columns);
    row->rows += static_cast<double>(step.rows()) / batches_;
    row->host_share += static_cast<double>(host) / all / batches_;
    row->peer_share += static_cast<double>(peer) / all / batches_;
    row->edges += static_cast<double>(step.edges()) / batches_;
    row->largest_edges += step.largest_edges() / batches_;
    row->exchanged_bytes += static_cast<double>(step.exchanged_bytes()) / batches_;
    return absl::OkStatus();
  }

  const ScaledGraph& graph_;
  const GraphMachine& machine_;
  const int batches_;
  VertexOwners owners_;
};

// Rows of one graph: what the paper has, two hosts, other caches.
absl::Status AddRows(const RealGraph& real, int scale, const GraphMachine& machine, int batches,
                     GraphEpochs* epochs) {
  PIPELAB_ASSIGN_OR_RETURN(const ScaledGraph graph, MakeScaledGraph(real, scale, /*seed=*/1));
  Simulation simulation(graph, machine, batches);
  PIPELAB_RETURN_IF_ERROR(simulation.Partition(PartitionMethod::kPreSamples));
  const auto add = [&](GraphSystem system, bool attends, int hosts, int64_t cache,
                       const char* variant) -> absl::Status {
    const bool repeat = absl::string_view(variant) == kRepeated;
    PIPELAB_ASSIGN_OR_RETURN(GraphEpochRow row,
                             simulation.Row(system, attends, hosts, cache, repeat));
    row.variant = variant;
    epochs->rows.push_back(std::move(row));
    return absl::OkStatus();
  };
  for (bool attends : {false, true}) {
    for (GraphSystem system : kGraphSystems) {
      PIPELAB_RETURN_IF_ERROR(add(system, attends, 1, real.cache_bytes, ""));
    }
    for (GraphSystem system : {GraphSystem::kData, GraphSystem::kSplit}) {
      PIPELAB_RETURN_IF_ERROR(add(system, attends, 2, real.cache_bytes, ""));
    }
    PIPELAB_RETURN_IF_ERROR(add(GraphSystem::kCache, attends, 1, real.cache_bytes, kRepeated));
    for (int64_t cache : {4, 6, 10}) {
      const std::string variant = absl::StrCat(cache, " GiB");
      PIPELAB_RETURN_IF_ERROR(add(GraphSystem::kSplit, attends, 1, cache << 30, variant.c_str()));
    }
  }
  PIPELAB_RETURN_IF_ERROR(simulation.Partition(PartitionMethod::kRandom));
  for (bool attends : {false, true}) {
    PIPELAB_RETURN_IF_ERROR(add(GraphSystem::kSplit, attends, 1, real.cache_bytes, kRandomOwners));
  }
  return absl::OkStatus();
}

}  // namespace

const GraphEpochRow& GraphEpochs::Of(absl::string_view graph, absl::string_view model,
                                     GraphSystem system, int hosts,
                                     absl::string_view variant) const {
  for (const GraphEpochRow& row : rows) {
    if (row.graph == graph && row.model == model && row.system == system && row.hosts == hosts &&
        row.variant == variant) {
      return row;
    }
  }
  LOG(FATAL) << "no row of " << graph << ", " << model << ", " << GraphSystemName(system);
}

absl::StatusOr<GraphEpochs> SimulateGraphEpochs(const GraphEpochsSize& size) {
  GraphEpochs epochs;
  epochs.size = size;
  PIPELAB_ASSIGN_OR_RETURN(epochs.paper, PublishedGSplit());
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec devices, LoadCluster("--cluster", size.devices));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec host, LoadCluster("--host", size.host));
  const GraphMachine machine = {&devices, &host};
  epochs.graphs = {size.orkut, size.papers};
  PIPELAB_RETURN_IF_ERROR(
      AddRows(epochs.graphs[0], size.orkut_scale, machine, size.batches, &epochs));
  PIPELAB_RETURN_IF_ERROR(
      AddRows(epochs.graphs[1], size.papers_scale, machine, size.batches, &epochs));
  return epochs;
}

}  // namespace pipelab
