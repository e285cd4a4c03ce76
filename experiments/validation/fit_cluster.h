// Fits the values of a cluster's specification that no data sheet has to measured rows
// (measured_rows.h): one number each for all rows, none for a size or a degree.
//
//   FitOptions options;
//   PIPELAB_ASSIGN_OR_RETURN(FittedCluster f, FitCluster(cluster, rows, options));
//   ClusterToJson(f.cluster);
//
// Fitted, by minimising the mean absolute error over every third measured row (or
// FitOptions::every), of which an error counts as 20% at most:
//   matmul                 the highest share of the peak, and the ramp: the work at the peak that
//                          every product takes beside its own, as of tiles and waves half filled
//   memory                 the same two of operations without products
//   product_alignment      shares for multiples of 1, 2 and 4 numbers
//   host_launch            the host's time an operation
//   collective_overhead, and latency and bandwidth of the innermost level's rings, whose bandwidth
//                          is no more than the connection's
// Everything else stays as it is. The search is a walk with a fixed seed that keeps what is better:
// deterministic.
#ifndef PIPELAB_EXPERIMENTS_VALIDATION_FIT_CLUSTER_H_
#define PIPELAB_EXPERIMENTS_VALIDATION_FIT_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "experiments/predict/measured_rows.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct FitOptions {
  int steps = 1000;
  uint64_t seed = 1;
  int every = kCalibratingStride;  // of the measured rows: the first, and so on
  std::string source;              // of the fitted values: what they were fitted to
  std::function<void(int step, double error)> progress;  // optional: after each step
};

struct FittedCluster {
  ClusterSpec cluster;
  double first_error = 0, error = 0;  // of the start and the end, mean over the fitted rows
};

// Other values than the fitted ones are those of `start`; the walk begins at rough ones, the same
// for every cluster. InvalidArgument for no rows.
absl::StatusOr<FittedCluster> FitCluster(const ClusterSpec& start, const MeasuredRows& rows,
                                         const FitOptions& options);

// Shares of a peak by work where every operation takes a ramp beside its own: share =
// highest / (1 + ramp * peak / work), as points.
EfficiencyCurve RampCurve(double highest, double ramp_seconds, double peak);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VALIDATION_FIT_CLUSTER_H_
