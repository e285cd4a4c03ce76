// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same, and may become a model.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "models/files/piper_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = pipelab::ParsePiper(text, "fuzz");
  if (!read.ok()) return 0;
  const std::string written = pipelab::PiperToJson(*read);
  const auto again = pipelab::ParsePiper(written, "again");
  if (!again.ok() || pipelab::PiperToJson(*again) != written) __builtin_trap();
  const auto list = pipelab::ToLayerList(*read, "model", "fuzz");
  if (!list.ok()) return 0;
  const auto graph = pipelab::MakeGraph(*list, "fuzz");
  if (!graph.ok()) return 0;
  for (const pipelab::LayerSpec& layer : graph->layers)
    layer.operations(100, pipelab::TokenSlice());
  return 0;
}
