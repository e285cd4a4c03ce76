#include "experiments/scaling/overheads.h"

#include <cstdint>

#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

double DeviceTime(const Trace& trace) {
  return static_cast<double>(trace.makespan.value()) * static_cast<double>(trace.devices.size());
}

// The same program with every stage taking the mean of the stages' times: what it is faster by is
// the imbalance.
absl::StatusOr<Trace> SimulateBalanced(const Step& step) {
  CostTable costs = step.costs;
  const int64_t stages = static_cast<int64_t>(costs.stages.size());
  for (Nanoseconds StageCost::*time :
       {&StageCost::forward, &StageCost::backward_input, &StageCost::backward_weight,
        &StageCost::recompute, &StageCost::step}) {
    int64_t sum = 0;
    for (const StageCost& stage : costs.stages) sum += (stage.*time).value();
    for (StageCost& stage : costs.stages) stage.*time = Nanoseconds(sum / stages);
  }
  return Simulate(step.program, costs);
}

}  // namespace

absl::StatusOr<Overheads> OverheadsOf(const StepPrediction& point) {
  PIPELAB_ASSIGN_OR_RETURN(const Trace balanced, SimulateBalanced(point.step));
  int64_t compute = 0, recompute = 0, update = 0;
  for (size_t d = 0; d < point.trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(point.step.program, point.trace, d)) {
      const int64_t time = span.end_ns - span.begin_ns;
      if (span.op == OpCode::kStep) {
        update += time;
      } else if (span.op == OpCode::kCompute) {
        (span.action.kind == ActionKind::kRecompute ? recompute : compute) += time;
      }
    }
  }
  const double set_up = static_cast<double>(point.step.set_up.value()) *
                        static_cast<double>(point.trace.devices.size());
  const double all = DeviceTime(point.trace) + set_up, equal = DeviceTime(balanced) + set_up;
  Overheads o;
  o.compute = static_cast<double>(compute) / all;
  o.recompute = static_cast<double>(recompute) / all;
  o.update = static_cast<double>(update) / all;
  o.imbalance = (all - equal) / all;
  o.set_up = set_up / all;
  o.bubble = 1 - o.compute - o.recompute - o.update - o.imbalance - o.set_up;
  return o;
}

}  // namespace pipelab
