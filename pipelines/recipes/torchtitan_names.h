// torchtitan's names of models and schedules. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_NAMES_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_NAMES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "models/zoo/gpt.h"

namespace pipelab {

// Sizes of llama3's flavors (torchtitan/models/llama3), as the zoo's llama-3-... have them.
struct TorchtitanModel {
  absl::string_view flavor;
  int64_t layers, hidden, heads, kv_heads, feed_forward, vocabulary;

  GptConfig Config(int64_t tokens) const {
    GptConfig c = LlamaConfig(layers, hidden, heads, feed_forward, tokens, vocabulary);
    c.kv_heads = kv_heads;
    c.rotary_base = 500000;
    return c;
  }
};
inline constexpr TorchtitanModel kTorchtitanModels[] = {
    {"debugmodel", 6, 256, 16, 16, 768, 2048},
    {"8B", 32, 4096, 32, 8, 14336, 128256},
    {"70B", 80, 8192, 64, 8, 28672, 128256},
    {"405B", 126, 16384, 128, 8, 53248, 128256},
};

// PyTorch's schedules. Some have exactly one stage per device.
struct TorchtitanSchedule {
  absl::string_view name, scheme;
  bool one_stage = false, v_shaped = false;
};
inline constexpr TorchtitanSchedule kTorchtitanSchedules[] = {
    {"1F1B", "1f1b", true},
    {"GPipe", "gpipe", true},
    {"Interleaved1F1B", "interleaved"},
    {"LoopedBFS", "breadth_first"},
    {"InterleavedZeroBubble", "interleaved_zb1p"},
    {"ZBVZeroBubble", "zbv", false, true},
    {"DualPipeV", "dualpipev", false, true},
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_TORCHTITAN_NAMES_H_
