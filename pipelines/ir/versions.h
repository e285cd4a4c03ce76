// Weight versions of asynchronous schedules: who uses them and how many live at a time.
//
//   Schedule s = *MakeSchedule("pipedream", {.devices = 4, .micro_batches = 8});
//   LiveVersions(s)      // {4, 3, 2, 1}: weights that each stage keeps
//   VersionUses(s)[3]    // {2, 2, 2, 2, 2, 2, 2, 2, 0}: of stage 3, F and B use each but the
//   newest
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

#include "absl/types/span.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Whether steps are in the order (asynchronous schedules), and not left to Lower.
bool HasOwnSteps(const Schedule& schedule);

// [stage][version] How many actions compute with it, on one device of the stage's; one entry more
// than the stage has steps. For valid schedules.
std::vector<std::vector<int32_t>> VersionUses(const Schedule& schedule);

// [stage] The most versions that live at a time; 1 in synchronous schedules.
std::vector<int> LiveVersions(const Schedule& schedule);

// [device] The most that versions beside the newest ones take at a time, where one version of
// stage s takes weights[s].
std::vector<int64_t> PeakStashed(const Schedule& schedule, absl::Span<const int64_t> weights);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_VERSIONS_H_
