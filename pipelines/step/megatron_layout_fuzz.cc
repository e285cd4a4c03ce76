// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "pipelines/step/megatron_layout.h"

// What is read is written so that it reads back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using pipelab::ParseMegatronLayout;
  const auto stages =
      ParseMegatronLayout(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!stages.ok()) return 0;
  const auto again = ParseMegatronLayout(pipelab::FormatMegatronLayout(*stages));
  if (!again.ok() || !(*again == *stages)) __builtin_trap();
  return 0;
}
