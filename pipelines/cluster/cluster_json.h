// Clusters as JSON files: every value with its unit and its source ("not given" where the file has
// none), unknown keys refused, what is left out filled in from device.class (device_class.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, ParseCluster(text, "--cluster=mine.json"));
//   std::string again = ClusterToJson(cluster);            // ParseCluster reads it back
//
// docs/clusters.md describes the format, pipelines/cluster/specs/template.json is one to fill in.
// Errors: InvalidArgument, one line with the file, and key and reason of each fault:
// "--cluster=mine.json: device.memory.value: \"16\": the unit is missing; must be a number and a
// unit, such as \"16 GiB\"".
#ifndef PIPELAB_PIPELINES_CLUSTER_CLUSTER_JSON_H_
#define PIPELAB_PIPELINES_CLUSTER_CLUSTER_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// `what` names the file in errors. The result satisfies CheckCluster.
absl::StatusOr<ClusterSpec> ParseCluster(absl::string_view text, absl::string_view what);

// Bytes and times to the last digit, rates to seventeen.
std::string ClusterToJson(const ClusterSpec& cluster);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_CLUSTER_JSON_H_
