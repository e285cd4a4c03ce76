// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/files/dnn_partitioning_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = pipelab::ParsePlacement(text, "fuzz");
  if (!read.ok()) return 0;
  const std::string written = pipelab::PlacementToJson(*read);
  const auto again = pipelab::ParsePlacement(written, "again");
  if (!again.ok() || pipelab::PlacementToJson(*again) != written) __builtin_trap();
  return 0;
}
