// A pipeline over a stream on paper (PARTIME, arXiv 2210.09147): speed-up over one device, latency,
// and what becomes of samples that arrive faster than the pipeline takes them.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<StreamPoint> points, StreamPoints(clusters));
//   report.AddTable(StreamTable(points));
//   for (Claim& c : StreamClaims(points)) report.AddClaim(std::move(c));
//
// Simulated: the authors' chain of convolutions, a sample a tick, each tick a forward, a backward
// and a step on every stage, or a forward alone.
#ifndef PIPELAB_EXPERIMENTS_STREAMS_STREAM_POINTS_H_
#define PIPELAB_EXPERIMENTS_STREAMS_STREAM_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

// What a tick is.
enum class TickKind {
  kTraining,    // forward, backward and step, with copies between devices beside them
  kSlowCopies,  // the same, and nothing hides a copy
  kInference,   // a forward
};

struct StreamPoint {
  std::string cluster;
  TickKind kind = TickKind::kTraining;
  int64_t layers = 0, side = 0;  // of the network and its images
  int devices = 0;
  Nanoseconds tick;     // of the steady state
  Nanoseconds latency;  // of a sample, from the first stage's forward to the last one's: median
  Nanoseconds alone;    // a sample on one device
  double longest = 0;   // longest stage over the mean stage

  double speedup() const { return alone / tick; }
};

absl::StatusOr<std::vector<StreamPoint>> StreamPoints(const std::vector<ClusterSpec>& clusters);

Table StreamTable(const std::vector<StreamPoint>& points);
// The table of one pipeline, at arrivals slower and faster than its tick.
Table ArrivalTable(const StreamPoint& point);
std::vector<Claim> StreamClaims(const std::vector<StreamPoint>& points);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_STREAMS_STREAM_POINTS_H_
