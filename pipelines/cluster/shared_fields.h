// A cluster's file may state once what is the source of several values, and leave out values that
// several machines share.
//
//   {"source": "published: data sheet", "memory": "80 GB", "memory_bandwidth": "2 TB/s"}
//   {"defaults": "nvidia", "memory": "80 GB"}         // and what defaults/nvidia.json has besides
//
// An object's source is that of all values in it, and in objects in it, which say no other. The
// device's `defaults` names a file of pipelines/cluster/defaults, which may name another one.
#ifndef PIPELAB_PIPELINES_CLUSTER_SHARED_FIELDS_H_
#define PIPELAB_PIPELINES_CLUSTER_SHARED_FIELDS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace pipelab {

// Gives each value of the file its source, and the device its defaults. InvalidArgument for
// unknown ones lists those that there are; `what` names the file.
absl::Status ExpandSharedFields(absl::string_view what, nlohmann::json* file);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_SHARED_FIELDS_H_
