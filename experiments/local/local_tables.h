// PPLL's headline as a table and claims (local_points.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<LocalPoint> points, LocalPoints(clusters));
//   report.AddTable(LocalTable(points));
//   for (Claim& c : LocalClaims(points)) report.AddClaim(std::move(c));
#ifndef PIPELAB_EXPERIMENTS_LOCAL_LOCAL_TABLES_H_
#define PIPELAB_EXPERIMENTS_LOCAL_LOCAL_TABLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "experiments/local/local_points.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// Both networks under every setting that the sources at hand leave open: numbers, heads, cuts,
// batches, clusters.
absl::StatusOr<std::vector<LocalPoint>> LocalPoints(const std::vector<ClusterSpec>& clusters);

Table LocalTable(const std::vector<LocalPoint>& points);
std::vector<Claim> LocalClaims(const std::vector<LocalPoint>& points);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_LOCAL_LOCAL_TABLES_H_
