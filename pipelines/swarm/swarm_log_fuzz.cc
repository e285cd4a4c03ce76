// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "pipelines/swarm/swarm_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)pipelab::CheckSwarmLog(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
