// A machine that its owner measured for SimuMax (MooreThreads/SimuMax, Apache-2.0: configs/system,
// docs/system.md) as a cluster. ParseCluster takes such a file wherever it takes one of ours.
//
//   if (IsSimumaxSystem(root)) return ParseSimumaxSystem(root, "--cluster=b200.json");
//
// Products and attention have the measured rates of their shapes and passes (shape_rates.h), which
// are the machine's own, so nothing more is left to be sustained. Grouped products count among
// products. SimuMax looks up attention of contiguous queries, keys and values, and so do we where
// the file has it; shapes that differ in heads of keys alone become one. Its flops of attention are
// those of all pairs, and twice ours. Latent attention's shapes have other flops than its queries'
// size says, so it has neighbours' rates. Weight gradients are those that are added to sums in 4
// bytes.
//
// Operations without products take `latency_us` and their bytes by the default bandwidth, whose GB
// has 1024^3 bytes. Inside a node rings have latency and bandwidth of all-gathers and
// reduce-scatters together, all-to-alls their own bandwidth. What the file lacks is assumed as for
// any GPU (device_class.h): what the host takes, and the number of nodes. `ce` and `permute` are
// shares of bytes that SimuMax counts otherwise, and are not read.
#ifndef PIPELAB_PIPELINES_CLUSTER_SIMUMAX_JSON_H_
#define PIPELAB_PIPELINES_CLUSTER_SIMUMAX_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// Such a file alone has the keys sys_name and accelerator.
bool IsSimumaxSystem(const nlohmann::json& root);

// InvalidArgument names file, place and what would be right. The result may not satisfy
// CheckCluster.
absl::StatusOr<ClusterSpec> ParseSimumaxSystem(const nlohmann::json& root, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_SIMUMAX_JSON_H_
