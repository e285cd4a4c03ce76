// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pipelab::ParseMetamath(bytes, "fuzz");
  const std::string text(bytes);
  (void)pipelab::ParseWordNet({text, "", text, ""});
  return 0;
}
