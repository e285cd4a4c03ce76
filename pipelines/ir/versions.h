// Weight versions of asynchronous schedules: who uses them and how many live at a time.
//
//   Schedule s = *MakeSchedule("pipedream", {.devices = 4, .micro_batches = 8});
//   LiveVersions(s)      // {4, 3, 2, 1}: weights that each stage keeps
//   VersionWalk(s, /*device=*/0).Next(action)     // how that changes, action by action
//   VersionUses(s)[3]    // {2, 2, 2, 2, 2, 2, 2, 2, 0}: of stage 3, F and B use all but the newest
//
// A run of a program begins with version 0 of each stage, which is the newest of the run before:
// all micro-batches of a run are over at its end, so runs compose with a flush between them. S@v
// makes version v from the gradients of all backwards since the step before it, and changes the
// newest weights, whatever version the gradients were computed with. A version lives from its step
// until the last action that computes with it is over, and at least until the next step.
//
// Papers: Narayanan et al., "PipeDream", SOSP 2019 (weight stashing); "PipeDream-2BW", ICML 2021.
#ifndef PIPELAB_PIPELINES_IR_VERSIONS_H_
#define PIPELAB_PIPELINES_IR_VERSIONS_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/schedule.h"

namespace pipelab {

// Whether steps are in the order (asynchronous schedules), and not left to Lower.
bool HasOwnSteps(const Schedule& schedule);
bool HasOwnSteps(const Schedule& schedule, int device);  // in the device's order

// [stage][version] How many actions compute with it, on one device of the stage's; one entry more
// than the stage has steps. For valid schedules.
std::vector<std::vector<int32_t>> VersionUses(const Schedule& schedule);

// [stage] The most versions that live at a time; 1 in synchronous schedules.
std::vector<int> LiveVersions(const Schedule& schedule);

// The versions that live on one device, as it runs its list.
class VersionWalk {
 public:
  VersionWalk(const Schedule& schedule, int device);

  // `action` is the next of the device's list. How many more versions of its stage live: 1 from the
  // begin of a step that leaves the version before it to those who still use it; -1 from the end of
  // the last use of an older one; else 0. Always 0 in synchronous schedules.
  int Next(const Action& action);
  // How many actions of the device compute with each version of the stage from here on.
  const std::vector<int32_t>& uses(int stage) const { return stages_[stage].uses; }

 private:
  struct StageVersions {
    std::vector<int32_t> uses = {0};  // [version]
    int newest = 0;
  };
  std::vector<StageVersions> stages_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_VERSIONS_H_
