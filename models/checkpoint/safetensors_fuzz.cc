// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What can be read is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weight_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pipelab::ParseTrainingState(bytes, "fuzz");
  (void)pipelab::ParseShardIndex(bytes, "fuzz");
  const auto file = pipelab::ParseSafetensors(bytes, "fuzz");
  if (!file.ok()) return 0;
  const std::string written = pipelab::SerializeSafetensors(*file);
  const auto again = pipelab::ParseSafetensors(written, "fuzz");
  if (!again.ok() || pipelab::SerializeSafetensors(*again) != written) std::abort();
  return 0;
}
