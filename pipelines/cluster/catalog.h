// The clusters that come with the project, and those of the user's own files.
//
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec a, LoadCluster("--cluster", "dgx-a100"));
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec b, LoadCluster("--cluster", "/home/me/ours.json"));
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec c, LoadCluster("--cluster", "dgx-h100:2048"));
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec d, LoadCluster("--cluster", "gb200-nvl72:32x72"));
//
// A word with a "/" or that ends in ".json" is a file, from the user's folder where it is relative;
// all else must be a name. After a colon stands how many units the outermost level has, nodes, in
// the place of the file's number; after an "x" how many devices are in each, where all of them are
// behind one switch. Adding a cluster is adding a file to specs/.
#ifndef PIPELAB_PIPELINES_CLUSTER_CATALOG_H_
#define PIPELAB_PIPELINES_CLUSTER_CATALOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

std::vector<std::string> ClusterNames();  // sorted

// A name may have _ for -: "dgx_a100". Errors begin with `option` and the word, or the word alone
// where `option` is empty: NotFound lists the names; a file's own are as in cluster_json.h.
absl::StatusOr<ClusterSpec> LoadCluster(absl::string_view option, absl::string_view word);

// The clusters of words with commas between them, one at least.
absl::StatusOr<std::vector<ClusterSpec>> LoadClusters(absl::string_view option,
                                                      absl::string_view words);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_CATALOG_H_
