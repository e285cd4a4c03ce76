// torchtitan's names of models and schedules. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_NAMES_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_NAMES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "models/zoo/gpt.h"

namespace pipelab {

// A flavor of a model, but for the samples' length: torchtitan/models of 2025, as the zoo's models
// of these names have it.
struct TorchtitanModel {
  absl::string_view name, flavor;
  GptConfig config;
};
const std::vector<TorchtitanModel>& TorchtitanModels();

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
