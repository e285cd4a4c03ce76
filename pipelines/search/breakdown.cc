#include "pipelines/search/breakdown.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pipelines/sim/simulate.h"
#include "pipelines/step/stage_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Device-nanoseconds of a step, by what they were.
struct Spent {
  double compute = 0, recompute = 0, step = 0;
};

// Backwards that rebuild their forward's activations do it in their own time.
Spent SpentIn(const StepPrediction& point) {
  const CostTable& costs = point.step.costs;
  const bool rebuilds = point.step.config.recompute == Recompute::kBlocks;
  Spent spent;
  for (size_t d = 0; d < point.trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(point.step.program, point.trace, d)) {
      const double time = static_cast<double>(span.end_ns - span.begin_ns);
      if (span.op == OpCode::kStep) spent.step += time;
      if (span.op != OpCode::kCompute) continue;
      const ActionKind kind = span.action.kind;
      double again = kind == ActionKind::kRecompute ? time : 0;
      if (rebuilds && (kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput)) {
        again = time * (costs.stages[span.action.stage].recompute / costs.Compute(span.action));
      }
      spent.recompute += again;
      spent.compute += time - again;
    }
  }
  return spent;
}

// Collectives of data parallelism of no time, and messages too.
CostTable Free(const Step& step, bool messages) {
  CostTable costs = step.costs;
  costs.reduce = Nanoseconds(0);
  for (auto* rings : {&costs.network.rings, &costs.network.expert_rings}) {
    for (auto& [devices, ring] : *rings) {
      ring.step_latency = ring.overhead = Nanoseconds(0);
      ring.uses.clear();
    }
  }
  if (!messages) return costs;
  for (Route& route : costs.network.routes) route = Route();
  costs.message_gather = PathCost();
  costs.launch_gap = Nanoseconds(0);
  return costs;
}

double Sum(const std::vector<UnitTime>& groups, bool recompute) {
  double sum = 0;
  for (const UnitTime& g : groups) {
    Nanoseconds time = g.forward + g.backward_input + g.backward_weight;
    if (recompute) time += g.recompute;
    sum += static_cast<double>(time.value());
  }
  return sum;
}

// The share of forward, backward and recompute that is collectives of the tensor-parallel group and
// of context parallelism.
absl::StatusOr<double> TensorShareOf(const StepModel& model, const StepConfig& c) {
  if (!c.split().divides() || model.cluster == nullptr) return 0.0;
  ClusterSpec free = *model.cluster;
  free.device.collective_overhead.reset();
  for (ClusterLevel& level : free.levels) {
    Connection nothing = level.connection;
    nothing.latency.value = Nanoseconds(0);
    nothing.bandwidth.value = BytesPerSecond(1e30);
    level.connection = nothing;
    level.rings.clear();
    level.through.reset();
  }
  StepModel without = model;
  without.cluster = &free;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime> all, UnitTimes(model, c));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime> alone, UnitTimes(without, c));
  const bool again = c.recomputes_forwards();
  return 1 - Sum(alone, again) / Sum(all, again);
}

}  // namespace

absl::StatusOr<StepBreakdown> BreakDown(const StepModel& model, const StepPrediction& point) {
  PIPELAB_ASSIGN_OR_RETURN(const Trace no_data,
                           Simulate(point.step.program, Free(point.step, /*messages=*/false)));
  PIPELAB_ASSIGN_OR_RETURN(const Trace no_messages,
                           Simulate(point.step.program, Free(point.step, /*messages=*/true)));
  StepCache cache(model);
  PIPELAB_ASSIGN_OR_RETURN(const StepModel* of_config, cache.ModelOf(point.step.config));
  PIPELAB_ASSIGN_OR_RETURN(const double tensor, TensorShareOf(*of_config, point.step.config));
  const double step = static_cast<double>(point.step_time.value());
  const double all = step * static_cast<double>(point.trace.devices.size());
  const Spent spent = SpentIn(point);
  StepBreakdown b;
  b.tensor = tensor * (spent.compute + spent.recompute) / all;
  b.compute = (1 - tensor) * spent.compute / all;
  b.recompute = (1 - tensor) * spent.recompute / all;
  b.step = spent.step / all;
  b.data = static_cast<double>((point.trace.makespan - no_data.makespan).value()) / step;
  b.pipeline = static_cast<double>((no_data.makespan - no_messages.makespan).value()) / step;
  b.idle = 1 - b.tensor - b.compute - b.recompute - b.step - b.data - b.pipeline;
  return b;
}

}  // namespace pipelab
