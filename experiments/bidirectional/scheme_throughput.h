// Throughput of synchronous schedules for one model, at the same devices, micro-batches and memory:
// only the schedule changes.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<SchemePoint> points, SchemeThroughput(options));
//   report.AddTable(ThroughputTable(points));
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<MachineCase> cases, OtherMachines(options));
//   for (Claim& c : BitPipeClaims(points, cases)) report.AddClaim(std::move(c));
//
// Times are the simulator's, of the lowered program on the cluster (pipelines/step/step.h).
// A schedule that does not fit into memory has none, and re-materialises nothing. Every schedule
// has its devices in the order (RankOrder) in which it is fastest.
//
// Claims are of the authors' own runs (AuthorsRun), on every number of GPUs, and over what is not
// known of their machine. The table has other numbers of micro-batches, too.
#ifndef PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_
#define PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/rank_network.h"

namespace pipelab {

// What the README of the authors' repository (wuhouming/BitPipe) trains on 8 GPUs, P = 8: samples
// of a micro-batch, and micro-batches (global batches of 32 and 16).
struct AuthorsRun {
  const char* model;
  int64_t micro_batch_size;
  int micro_batches;
};
inline constexpr AuthorsRun kAuthorsRuns[] = {{"bert-64", 4, 8}, {"gpt-96", 1, 16}};

struct ThroughputOptions {
  ClusterSpec cluster;
  std::vector<std::string> models;
  std::vector<int> gpus;
  std::vector<int> micro_batches;  // beside the authors'
  int pipeline = 8;
  int64_t micro_batch_size = 0;  // 0: the authors'; of other models 4
  std::vector<std::string> schemes = {"gpipe",   "1f1b",  "interleaved", "breadth_first", "chimera",
                                      "bitpipe", "zb_h1", "zbv",         "dualpipe"};
};

struct SchemePoint {
  std::string model, scheme;
  int gpus = 0, micro_batches = 0;
  double samples_per_second = 0;  // 0: it does not fit, or cannot be
  double bubble = 0;              // share of the devices' time
  double memory_gib = 0;          // of the largest device
  RankOrder ranks = RankOrder::kTensorDataPipeline;
  bool authors = false;  // of an AuthorsRun
  std::string missing;   // why there is no throughput
};

absl::StatusOr<std::vector<SchemePoint>> SchemeThroughput(const ThroughputOptions& options);
Table ThroughputTable(const std::vector<SchemePoint>& points);

// The authors' runs on a machine that differs in what the sources do not say.
struct MachineCase {
  std::string name;
  std::vector<SchemePoint> points;
};
absl::StatusOr<std::vector<MachineCase>> OtherMachines(ThroughputOptions options);

// BitPipe over the synchronous schedules that its paper compares: the headline's range, and over
// each of them.
std::vector<Claim> BitPipeClaims(const std::vector<SchemePoint>& points,
                                 const std::vector<MachineCase>& cases);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_
