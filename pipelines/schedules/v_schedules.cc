// V-Half and V-Min (Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024): the
// V of ZB-V with a half and a third of its memory.
//
// A schedule is one building block, the F and I of one micro-batch in all stages, repeated every
// six slots (F, I and W of two stages). How long the block keeps a micro-batch on a device is its
// memory: V-Half goes down the devices in steps of two and up in steps of one, V-Min always in
// steps of one. The blocks' slots give the order of F and I; W fill the gaps under the scheme's
// memory, which also squeezes the first and last blocks.
#include <algorithm>
#include <array>
#include <vector>

#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/v_shape.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Slots of a device in the block: F down, F up, I up, I down.
using Block = std::array<int, 4>;

absl::StatusOr<Schedule> RepeatBlock(const SchemeParams& params, Block (*block)(int, int),
                                     int max_activations) {
  PIPELAB_RETURN_IF_ERROR(CheckTwoChunks(params));
  constexpr int kInterval = 6;
  Schedule schedule = ZigZagPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    const int down = d, up = 2 * params.devices - 1 - d;
    const Block at = block(params.devices, d);
    const int last = *std::max_element(at.begin(), at.end());
    std::vector<Action> slots(kInterval * (params.micro_batches - 1) + last + 1, Forward(-1, 0));
    for (int m = 0; m < params.micro_batches; ++m) {
      const Action actions[] = {Forward(down, m), Forward(up, m), BackwardInput(up, m),
                                BackwardInput(down, m)};
      for (int i = 0; i < 4; ++i) {
        Action& slot = slots[kInterval * m + at[i]];
        CHECK_EQ(slot.stage, -1) << "two actions in one slot";
        slot = actions[i];
      }
    }
    for (const Action& a : slots) {
      if (a.stage >= 0) schedule.order[d].push_back(a);
    }
  }
  FillGapsWithWeights(&schedule, max_activations);
  return schedule;
}

// Without the pauses at the turns two actions of a device would meet in a slot (modulo six).
Block HalfBlock(int devices, int d) {
  const int pause = devices % 2 == 0 ? 3 : 0;
  return {2 * d, 3 * devices - 2 - d, 3 * devices - 1 + pause + 2 * d, 6 * devices - 2 + pause - d};
}

Block MinBlock(int devices, int d) {
  const int pause = devices % 3 == 0 ? 2 : 0;
  return {d, 2 * devices - 1 - d, 2 * devices + pause + d, 4 * devices - 1 + pause - d};
}

}  // namespace

absl::StatusOr<Schedule> MakeVHalf(const SchemeParams& params) {
  const int devices = params.devices;
  return RepeatBlock(params, &HalfBlock, devices % 2 == 0 ? devices + 2 : devices + 1);
}

absl::StatusOr<Schedule> MakeVMin(const SchemeParams& params) {
  return RepeatBlock(params, &MinBlock, 2 * ((params.devices + 1) / 3) + 2);
}

}  // namespace pipelab
