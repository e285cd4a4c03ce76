// A file that says how devices are connected (--links=FILE), as a network.
//
//   {"links": [{"name": "uplink", "latency": 0.1, "bandwidth": "10GB"}],
//    "paths": [{"from": [0, 1], "to": [2, 3], "links": ["uplink"]}]}
//
//   PIPELAB_ASSIGN_OR_RETURN(Network net, ParseLinks(text, "--links=a.json", 4, own, 1e6));
//
// Latencies are in the user's unit of time, bandwidths in bytes (a number, or a string with a unit)
// in one unit of time; without one a link has no limit. `from` and `to` are a device, a list of
// them, or "all"; a path holds for each pair of two different devices. A later path replaces an
// earlier one; pairs without one have their own link, `own`. Errors: InvalidArgument naming
// file and field.
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_LINKS_FILE_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_LINKS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/network.h"

namespace pipelab {

// `own` is scaled already; the file's values are by `nanoseconds_per_unit`.
absl::StatusOr<Network> ParseLinks(absl::string_view text, const std::string& what, int num_devices,
                                   const Link& own, double nanoseconds_per_unit);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_LINKS_FILE_H_
