// Throughput of synchronous schedules for one model, at the same devices, micro-batches and memory:
// only the schedule changes.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<SchemePoint> points, SchemeThroughput(options));
//   report.AddTable(ThroughputTable(points));
//   for (Claim& c : BitPipeClaims(points)) report.AddClaim(std::move(c));
//
// Times are the simulator's, of the lowered program on the cluster (pipelines/step/step.h).
// A schedule that does not fit into memory has none, and re-materialises nothing.
#ifndef PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_
#define PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct ThroughputOptions {
  ClusterSpec cluster;
  std::vector<std::string> models;
  std::vector<int> gpus, micro_batches;
  int pipeline = 8;
  int64_t samples = 4;
  std::vector<std::string> schemes = {"gpipe",   "1f1b",  "interleaved", "breadth_first", "chimera",
                                      "bitpipe", "zb_h1", "zbv",         "dualpipe"};
};

struct SchemePoint {
  std::string model, scheme;
  int gpus = 0, micro_batches = 0;
  double samples_per_second = 0;  // 0: it does not fit, or cannot be
  double bubble = 0;              // share of the devices' time
  double memory_gib = 0;          // of the largest device
  std::string missing;            // why there is no throughput
};

absl::StatusOr<std::vector<SchemePoint>> SchemeThroughput(const ThroughputOptions& options);
Table ThroughputTable(const std::vector<SchemePoint>& points);

// BitPipe over the synchronous schedules that its paper compares: the headline's range, and over
// each of them.
std::vector<Claim> BitPipeClaims(const std::vector<SchemePoint>& points);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_BIDIRECTIONAL_SCHEME_THROUGHPUT_H_
