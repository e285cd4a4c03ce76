// What an action does to its device: time and memory, from a cost table. The one place where the
// memory semantics of ir/program.h become numbers.
//
//   EffectTable effects(schedule, costs);
//   const ActionEffect& e = effects.Of(replica, action);
//
// Nanoseconds and bytes, for one member of the stage's group and one slice.
#ifndef PIPELAB_PIPELINES_SIM_EFFECTS_H_
#define PIPELAB_PIPELINES_SIM_EFFECTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct ActionEffect {
  int64_t time = 0;
  int64_t peak = 0;    // bytes above the level while it runs
  int64_t change = 0;  // of the level, once it is over
};

class EffectTable {
 public:
  EffectTable(const Schedule& schedule, const CostTable& costs);

  const ActionEffect& Of(int replica, const Action& a) const {
    const int slice = num_slices_ > 1 ? a.slice : 0;
    return table_[(replica * num_stages_ + a.stage) * num_slices_ + slice]
                 [static_cast<int>(a.kind)];
  }

 private:
  static constexpr int kNumKinds = 6;
  using StageEffects = std::array<ActionEffect, kNumKinds>;

  static StageEffects Effects(const Schedule& s, const CostTable& costs, int stage, int slice,
                              bool recomputed, int64_t parts);

  int num_stages_;
  int num_slices_;                   // that differ: 1 where the table knows no slices
  std::vector<StageEffects> table_;  // [(replica * stages + stage) * slices + slice]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_EFFECTS_H_
