// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "pipelines/cluster/cluster_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cluster = pipelab::ParseCluster(text, "fuzz");
  if (!cluster.ok()) return 0;
  const std::string written = pipelab::ClusterToJson(*cluster);
  const auto again = pipelab::ParseCluster(written, "again");
  if (!again.ok() || pipelab::ClusterToJson(*again) != written) __builtin_trap();
  return 0;
}
