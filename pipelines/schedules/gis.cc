// PipeOffload (Wan et al., "PipeOffload: Improving Scalability of Pipeline Parallelism with Memory
// Optimization", ICML 2025, arXiv 2503.01328): interleaved schedules with short lives, and what
// forwards keep of long lives in the host's memory.
//
// gis, generalised interleaving: groups of g micro-batches, P/2 <= g <= P, go through one stage of
// a device after another. A device's first backward comes after (V-1) g + P - r forwards, which is
// what it holds: with g = P never more than 1F1B does of its whole model, and with g = ceil(P/2)
// (gis_h) about half of it. Backwards are split, so that a gradient goes on before the weights'
// part: with fused ones a step up takes two units, and groups below 2P/3 would wait for it. Each
// device waits 2 (P-1) + (V-1) (P-g) units in all, the second part where a small group's first
// stages warm up.
//
// po_f offloads every stage of gis_h: the copy of a forward begins when it is over, and comes back
// in the slot (F, I and W) before its I. Then a device holds three stage activations: the one that
// runs backward, the next one on its way back, the one that runs forward. (The paper reports about
// four.) Copies are free as long as both of a pass take no longer than F, I and W (OffloadRatio in
// pipelines/cost/offload.h is at most 1): each slot has one out and one in.
//
// po_h offloads the first half of a device's stages, whose micro-batches live the longest, where
// gis_h runs each stage every V slots instead of in groups. A stage then holds as many as its life
// lasts: P (V - c) / V of stage c, of which the second half has about a quarter.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

// A device's work is a row of slots, of one F, I and W each. Which slot's F, counted from the
// device's first, is that of micro-batch m of stage number c: in groups, or every V slots.
struct Slots {
  int chunks = 1;
  int group = 1;  // or how many slots a stage is behind the one before it
  bool uniform = false;

  int Of(int chunk, int m) const {
    if (!uniform) return chunks * group * (m / group) + group * chunk + m % group;
    // Stages must not meet in a slot.
    const int meet = chunks / std::gcd(chunks, group);
    return group * chunk + chunk / meet + chunks * m;
  }
};

// Places within a slot, and in front of the whole.
enum Place { kLoad = 0, kRun = 1, kStore = 2, kInput = 3, kWeight = 4, kPlaces = 5 };

Schedule InSlots(const SchemeParams& params, const Slots& slots, int offloaded_chunks) {
  const int devices = params.devices, chunks = params.virtual_stages;
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < devices; ++d) {
    // Backwards take the stages from the last to the first, in the same slots, so much later.
    const int later = slots.Of(chunks - 1, 0) + devices - 1 - d;
    std::vector<std::pair<int64_t, Action>> order;
    order.reserve(size_t{5} * static_cast<size_t>(chunks) * params.micro_batches);
    const auto add = [&](ActionKind kind, int stage, int m, int slot, Place place) {
      order.emplace_back(int64_t{slot} * kPlaces + place,
                         Action{kind, static_cast<int16_t>(stage), m, 0, 0});
    };
    for (int m = 0; m < params.micro_batches; ++m) {
      for (int c = 0; c < chunks; ++c) {
        const int stage = c * devices + d;
        const int forward = slots.Of(c, m), backward = slots.Of(chunks - 1 - c, m) + later;
        add(ActionKind::kForward, stage, m, forward, kRun);
        add(ActionKind::kBackwardInput, stage, m, backward, kInput);
        add(ActionKind::kBackwardWeight, stage, m, backward, kWeight);
        // Out after its forward, and back in the slot before its backward.
        if (c >= offloaded_chunks || backward - 1 <= forward) continue;
        add(ActionKind::kOffload, stage, m, forward, kStore);
        add(ActionKind::kReload, stage, m, backward - 1, kLoad);
      }
    }
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, action] : order) schedule.order[d].push_back(action);
  }
  return schedule;
}

int HalfOf(int devices) { return (devices + 1) / 2; }

}  // namespace

absl::Status CheckGis(const SchemeParams& params) {
  const int least = HalfOf(params.devices);
  if (params.group_size == 0 ||
      (params.group_size >= least && params.group_size <= params.devices)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--group_size=", params.group_size, ": must be from ", least,
      ", below which a group would wait for its own results, to --devices=", params.devices,
      "; interleaved takes larger groups"));
}

absl::StatusOr<Schedule> MakeGis(const SchemeParams& params) {
  const int group = params.group_size == 0 ? params.devices : params.group_size;
  return InSlots(params, {params.virtual_stages, group, false}, 0);
}

absl::StatusOr<Schedule> MakeGisH(const SchemeParams& params) {
  return InSlots(params, {params.virtual_stages, HalfOf(params.devices), false}, 0);
}

absl::StatusOr<Schedule> MakePoH(const SchemeParams& params) {
  return InSlots(params, {params.virtual_stages, HalfOf(params.devices), true},
                 std::max(1, params.virtual_stages / 2));
}

absl::StatusOr<Schedule> MakePoF(const SchemeParams& params) {
  return InSlots(params, {params.virtual_stages, HalfOf(params.devices), false},
                 params.virtual_stages);
}

}  // namespace pipelab
