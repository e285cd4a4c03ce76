// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What can be read is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "models/layers/quantize/int4_network.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto network =
      pipelab::ParseInt4Network({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!network.ok()) return 0;
  const std::string written = pipelab::SerializeInt4Network(*network);
  const auto again = pipelab::ParseInt4Network(written, "fuzz");
  if (!again.ok() || pipelab::SerializeInt4Network(*again) != written) std::abort();
  return 0;
}
