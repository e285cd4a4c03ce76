// Epochs of four systems that train graph networks over several devices, simulated
// (pipelines/graphs/graph_step_time.h), beside those that GSplit's authors published.
//
//   PIPELAB_ASSIGN_OR_RETURN(const GraphEpochs epochs, SimulateGraphEpochs(size));
//   for (Table& table : EpochTables(epochs)) report.AddTable(std::move(table));
#ifndef PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_EPOCHS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_EPOCHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/graph_split/scaled_graphs.h"
#include "experiments/published/gsplit.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/graphs/graph_placement.h"
#include "pipelines/graphs/graph_step_time.h"

namespace pipelab {

// The variant of the divided cache in which each member has the hottest rows, too.
inline constexpr char kRepeated[] = "hottest repeated";

// Split parallelism with owners by chance, instead of METIS's by pre-samples.
inline constexpr char kRandomOwners[] = "random owners";

struct GraphEpochsSize {
  RealGraph orkut = OrkutShape(), papers = Papers100MShape();
  int orkut_scale = 16, papers_scale = 128;
  int batches = 4;  // real batches that a step's counts are the mean of
  std::string devices = "p3.8xlarge", host = "p3.8xlarge-pcie";
};

// One system, graph and model.
struct GraphEpochRow {
  std::string graph, model;  // "orkut", "sage"
  std::string variant;       // of the set-up: empty for the one that is compared with the paper
  GraphSystem system = GraphSystem::kData;
  int hosts = 1;
  double sample = 0, load = 0, train = 0, exchange = 0;  // seconds of an epoch
  // A step's, of all members.
  double rows = 0, host_share = 0, peer_share = 0;  // loaded; shares of `rows`
  double edges = 0, largest_edges = 0, exchanged_bytes = 0;

  double total() const { return sample + load + train; }
};

struct GraphEpochs {
  GraphEpochsSize size;
  std::vector<RealGraph> graphs;
  GSplitPaper paper;
  std::vector<GraphEpochRow> rows;

  const GraphEpochRow& Of(absl::string_view graph, absl::string_view model, GraphSystem system,
                          int hosts = 1, absl::string_view variant = "") const;  // CHECKed
};

absl::StatusOr<GraphEpochs> SimulateGraphEpochs(const GraphEpochsSize& size);
std::vector<Table> EpochTables(const GraphEpochs& epochs);
std::vector<Claim> EpochClaims(const GraphEpochs& epochs);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_EPOCHS_H_
