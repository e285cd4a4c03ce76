// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same, and what makes a graph has costs.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "models/files/layer_list_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto list = pipelab::ParseLayerList(text, "fuzz");
  if (!list.ok()) return 0;
  const std::string written = pipelab::LayerListToJson(*list);
  const auto again = pipelab::ParseLayerList(written, "again");
  if (!again.ok() || pipelab::LayerListToJson(*again) != written) __builtin_trap();
  const auto graph = pipelab::MakeGraph(*list, "fuzz");
  if (!graph.ok()) return 0;
  for (const pipelab::LayerSpec& layer : graph->layers) {
    if (layer.costs(1000).forward_peak < pipelab::Bytes(0)) __builtin_trap();
    layer.operations(1000, pipelab::TokenSlice());
  }
  return 0;
}
