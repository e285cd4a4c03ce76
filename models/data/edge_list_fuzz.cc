// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. A graph that is read has ascending lists of vertices that exist, each edge both ways.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "models/data/edge_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph =
      pipelab::ParseEdgeList(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!graph.ok()) return 0;
  for (int32_t v = 0; v < graph->num_vertices(); ++v) {
    int32_t last = -1;
    for (int32_t u : graph->neighbours(v)) {
      if (u <= last || u == v || u >= graph->num_vertices()) __builtin_trap();
      const auto back = graph->neighbours(u);
      if (!std::binary_search(back.begin(), back.end(), v)) __builtin_trap();
      last = u;
    }
  }
  return 0;
}
