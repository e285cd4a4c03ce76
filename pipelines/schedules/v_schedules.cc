// V-Half and V-Min (Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024): the
// V of ZB-V with a half and a third of its memory.
//
// A schedule is one building block, the F and I of one micro-batch in all stages, repeated every
// six slots (F, I and W of two stages). How long the block keeps a micro-batch on a device is its
// memory: V-Half goes down the devices in steps of two and up in steps of one, V-Min always in
// steps of one, with a pause at the turn from forward to backward that memory permits.
//
// The authors move passes of the first and last blocks into earlier slots that are free. Here the
// blocks are a guide (guided_order.h): anywhere a device that would wait takes a later F or I if
// all that the guide has before it still fits into the scheme's memory. That is nowhere longer than
// the authors' orders (v_schedules_test).
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/v_guides.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Slots of a device in the block: F down, F up, I up, I down.
using Block = std::array<int, 4>;

// Passes that meet in a slot, where the pause does not prevent it, are in the order of their
// blocks: what they depend on is in slots before.
Schedule RepeatBlock(const SchemeParams& params, Block (*block)(int, int, int), int pause) {
  constexpr int kInterval = 6;
  Schedule schedule = ZigZagPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    const int down = d, up = 2 * params.devices - 1 - d;
    const Block at = block(params.devices, d, pause);
    std::vector<std::pair<int, Action>> slots;
    slots.reserve(size_t{4} * params.micro_batches);
    for (int m = 0; m < params.micro_batches; ++m) {
      const Action actions[] = {Forward(down, m), Forward(up, m), BackwardInput(up, m),
                                BackwardInput(down, m)};
      for (int i = 0; i < 4; ++i) slots.emplace_back(kInterval * m + at[i], actions[i]);
    }
    std::stable_sort(slots.begin(), slots.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [slot, action] : slots) schedule.order[d].push_back(action);
  }
  return schedule;
}

Block HalfBlock(int devices, int d, int pause) {
  return {2 * d, 3 * devices - 2 - d, 3 * devices - 1 + pause + 2 * d, 6 * devices - 2 + pause - d};
}

Block MinBlock(int devices, int d, int pause) {
  return {d, 2 * devices - 1 - d, 2 * devices + pause + d, 4 * devices - 1 + pause - d};
}

// Without a pause two actions of a device would meet in a slot (modulo six).
Schedule HalfGuide(const SchemeParams& params) {
  return RepeatBlock(params, &HalfBlock, params.devices % 2 == 0 ? 3 : 0);
}

// For equal times the scheme's guide, or, where few micro-batches leave memory, the shortest one.
absl::StatusOr<Schedule> BestInV(const SchemeParams& params, int max_activations, Schedule guide) {
  if (!params.times.forward.empty()) {
    return BestOrder(PassLengths::Of(params), max_activations, {*params.for_equal_times},
                     VGuides(params), params.limits);
  }
  std::vector<Schedule> guides;
  guides.push_back(std::move(guide));
  if (params.micro_batches < params.devices) guides.push_back(RepeatBlock(params, &MinBlock, 0));
  return BestOrder(PassLengths::Unit(2 * params.devices), max_activations, {}, guides);
}

}  // namespace

std::vector<Schedule> VGuides(const SchemeParams& params) {
  std::vector<Schedule> guides = {HalfGuide(params)};
  for (int pause : {0, 2, 4}) guides.push_back(RepeatBlock(params, &MinBlock, pause));
  return guides;
}

int HeldInVHalf(const SchemeParams& params) {
  return params.devices % 2 == 0 ? params.devices + 2 : params.devices + 1;
}

absl::StatusOr<Schedule> MakeVHalf(const SchemeParams& params) {
  return BestInV(params, HeldInVHalf(params), HalfGuide(params));
}

int HeldInVMin(const SchemeParams& params) { return 2 * ((params.devices + 1) / 3) + 2; }

absl::StatusOr<Schedule> MakeVMin(const SchemeParams& params) {
  // The longest that memory permits.
  const int devices = params.devices;
  const int pause = devices % 3 == 0 ? 2 : devices % 3 == 1 || devices == 2 ? 0 : 4;
  return BestInV(params, HeldInVMin(params), RepeatBlock(params, &MinBlock, pause));
}

}  // namespace pipelab
