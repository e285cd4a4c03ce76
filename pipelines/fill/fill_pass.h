// Fill instructions in a program: where other jobs may run, for how long and with how much memory.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<DeviceGaps> gaps,
//                            FindGaps(program, costs, trace, device_memory));
//   const Program open = WithFills(program, gaps);            // one for each gap, for any job
//   std::vector<FillPlan> plans = ...;                        // [device], of their FillProblems
//   PIPELAB_ASSIGN_OR_RETURN(const Program planned, WithFills(program, problems, plans));
//   Simulate(planned, costs);       // with the jobs' spans; the training's passes stay
//
// The program is any lowered one and the trace any of it, simulated or measured: nothing here knows
// schemes. The runtime does not know its gaps before it has run: WithFillPlaces gives it fills
// without time, and a GapForecast gives them that from each step to the next.
//
// A fill in front of a collective's wait costs the training nothing where the sum goes on beside
// compute. Where the waits do the work (CostTable::collectives_at_wait), it makes the others late,
// and the runtime leaves it empty (runtime/device_runner.h). Nanoseconds, bytes.
#ifndef PIPELAB_PIPELINES_FILL_FILL_PASS_H_
#define PIPELAB_PIPELINES_FILL_FILL_PASS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/fill/fill_plan.h"
#include "pipelines/fill/gaps.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// A fill for each gap.
Program WithFills(Program program, const std::vector<DeviceGaps>& gaps);
// [device] A fill for each run that a plan has in one of its steps, the `iteration`th.
// InvalidArgument naming the device and the gap of a plan that CheckFillPlan refuses.
absl::StatusOr<Program> WithFills(Program program, const std::vector<FillProblem>& problems,
                                  const std::vector<FillPlan>& plans, int iteration = 0);
// A fill of no time in front of each wait for a message and at each list's end.
Program WithFillPlaces(Program program);

// How long gaps will be and how much is free in them: the medians of the last steps. The first
// steps are longer than those that follow, and steps drift, so what is foreseen follows them.
class GapForecast {
 public:
  // Nothing is foreseen before so many steps.
  explicit GapForecast(int least_steps) : least_steps_(least_steps) {}

  // The gaps of the next step of one program. One in which other jobs took longer than was foreseen
  // says nothing of its own length, and counts as foreseen.
  void Add(const std::vector<DeviceGaps>& gaps);
  // The lengths of the gaps of the step to come, by device and Gap::instruction.
  std::map<std::pair<int, int32_t>, Nanoseconds> Foreseen() const;
  Nanoseconds TimeOf(int device, int32_t instruction) const;
  // Gives the program's fills what is foreseen.
  void SetFills(Program* program) const;

 private:
  struct Place {
    std::deque<int64_t> times;  // of the last steps; 0 where there was no gap
    Bytes free;                 // in the last of its gaps
  };

  const int least_steps_;
  int steps_ = 0;
  std::map<std::pair<int, int32_t>, Place> places_;  // [device, instruction]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_PASS_H_
