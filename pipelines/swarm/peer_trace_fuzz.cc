// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "pipelines/swarm/peer_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pipelab::ParsePeerTrace(bytes, "fuzz");
  return 0;
}
