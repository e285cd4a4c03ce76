// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "models/data/gettext_mo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)pipelab::ParseMo(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  return 0;
}
