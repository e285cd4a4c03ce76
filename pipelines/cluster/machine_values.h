// All values of a machine as text, each with its origin and source, in the order of its file.
//
//   for (const MachineValue& v : ValuesOf(cluster)) Print(v.place, v.text, OriginOf(v.source));
//   // "device.peaks.bf16", "989 Tflop/s", {"published", "data sheet, dense"}
//
// A value that a file leaves out and a rule gives has a source that begins with "computed" or
// "assumed" and says the rule.
#ifndef PIPELAB_PIPELINES_CLUSTER_MACHINE_VALUES_H_
#define PIPELAB_PIPELINES_CLUSTER_MACHINE_VALUES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

// As a specification has them, to six digits: "1979 Tflop/s", "180 GB", "80 GiB", "13.2 us".
std::string ExactText(Bytes b);
std::string ExactText(Nanoseconds t);
std::string ExactText(BytesPerSecond r);
std::string ExactText(FlopsPerSecond r);

struct ValueOrigin {
  // One of measured, published, calibrated, recalled, assumed and computed; "not given" of a source
  // that begins with none of them.
  absl::string_view name;
  absl::string_view words;  // the source without it
};
ValueOrigin OriginOf(absl::string_view source);

struct MachineValue {
  std::string place;  // of the file: "levels[0].ring[2].all_reduce"
  std::string text;   // with its unit
  std::string source;
};
std::vector<MachineValue> ValuesOf(const ClusterSpec& cluster);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_MACHINE_VALUES_H_
