// Whether a cost table is one that a program can be simulated with. Private to simulate.
//
//   PIPELAB_RETURN_IF_ERROR(CheckFits(program, costs));
//   PIPELAB_RETURN_IF_ERROR(CheckTimes(program, costs, largest_copy, LongestTime(program)));
//
// InvalidArgument, which says what does not fit.
#ifndef PIPELAB_PIPELINES_SIM_CHECK_COSTS_H_
#define PIPELAB_PIPELINES_SIM_CHECK_COSTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// Stages, edges, slices, devices and instructions are as many as the program's, and rates are none
// below 0.
absl::Status CheckFits(const Program& program, const CostTable& costs);

// If no part of a program takes longer, no sum of its times reaches 2^62 ns, which is 146 years.
Nanoseconds LongestTime(const Program& program);

// "... takes longer than the simulator can count, ...": `what` ends with its verb.
absl::Status LongerThan(Nanoseconds most, absl::string_view what);

// Checks the times of actions, fills and copies to the host, of which `copy` is the largest.
absl::Status CheckTimes(const Program& program, const CostTable& costs, Bytes copy,
                        Nanoseconds most);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_CHECK_COSTS_H_
