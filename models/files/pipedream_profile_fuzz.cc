// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same, and may become a model.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "models/files/pipedream_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = pipelab::ParsePipeDreamProfile(text, "fuzz");
  if (!read.ok()) return 0;
  const std::string written = pipelab::PipeDreamProfileToText(*read);
  const auto again = pipelab::ParsePipeDreamProfile(written, "again");
  if (!again.ok() || pipelab::PipeDreamProfileToText(*again) != written) __builtin_trap();
  const auto rest = pipelab::WithoutInputs(*read);
  const auto graph = pipelab::MakeGraph(pipelab::ToLayerList(rest, "model"), "fuzz");
  if (!graph.ok()) return 0;
  for (const pipelab::LayerSpec& layer : graph->layers)
    layer.operations(100, pipelab::TokenSlice());
  return 0;
}
