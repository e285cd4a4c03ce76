#include "pipelines/graphs/graph_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsPass(const Instruction& span, int stage, ActionKind kind) {
  return span.op == OpCode::kCompute && span.action.stage == stage && span.action.kind == kind;
}

}  // namespace

std::vector<BatchSeconds> SecondsOf(const Program& program, const Trace& trace, bool by_the_clock) {
  std::vector<BatchSeconds> seconds(program.schedule.num_micro_batches);
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      const double time =
          1e-9 * static_cast<double>(by_the_clock ? span.end_ns - span.begin_ns : span.cpu_ns);
      if (span.op == OpCode::kStep) {
        seconds[span.action.version - 1].step += time;
      } else if (span.op == OpCode::kCompute) {
        BatchSeconds& s = seconds[span.action.micro_batch];
        const bool backward = span.action.kind == ActionKind::kBackward;
        double* const of_stage[] = {&s.sample, &s.gather, &s.move, &s.forward};
        (backward ? s.backward : *of_stage[span.action.stage]) += time;
      }
    }
  }
  return seconds;
}

CostTable PreparationCosts(const Schedule& schedule, absl::Span<const BatchSeconds> seconds) {
  const auto time = [](double s) { return Nanoseconds(std::llround(s * 1e9)); };
  CostTable costs;
  costs.stages.resize(PreparationStage::kStages);
  costs.edge_bytes.assign(schedule.stages.edges.size(), Bytes(0));
  costs.of_passes = true;
  double step = 0;
  for (int m = 0; m < schedule.num_micro_batches; ++m) {
    const BatchSeconds& s = seconds[static_cast<size_t>(m) % seconds.size()];
    SliceCosts slice{costs.stages, costs.edge_bytes};
    slice.stages[PreparationStage::kSample].forward = time(s.sample);
    slice.stages[PreparationStage::kGather].forward = time(s.gather);
    slice.stages[PreparationStage::kMove].forward = time(s.move);
    slice.stages[PreparationStage::kTrain].forward = time(s.forward);
    slice.stages[PreparationStage::kTrain].backward_input = time(s.backward);
    step += s.step / schedule.num_micro_batches;
    costs.slices.push_back(std::move(slice));
  }
  costs.stages[PreparationStage::kTrain].step = time(step);
  return costs;
}

absl::StatusOr<FirstComeRun> SimulateFirstCome(PreparationSizes sizes,
                                               absl::Span<const BatchSeconds> seconds) {
  constexpr int kMostRounds = 20;
  std::vector<int64_t> came(sizes.batches);
  sizes.taken.resize(sizes.batches);
  std::iota(sizes.taken.begin(), sizes.taken.end(), 0);
  for (int round = 0;; ++round) {
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakePreparation(sizes));
    const CostTable costs = PreparationCosts(schedule, seconds);
    FirstComeRun run;
    PIPELAB_ASSIGN_OR_RETURN(run.program, Lower(std::move(schedule), {}));
    PIPELAB_ASSIGN_OR_RETURN(run.trace, Simulate(run.program, costs));
    for (size_t d = 0; d < run.trace.devices.size(); ++d) {
      for (const ExecutedInstruction& span : SpansOf(run.program, run.trace, d)) {
        if (IsPass(span, PreparationStage::kMove, ActionKind::kForward)) {
          came[span.action.micro_batch] = span.end_ns;
        }
      }
    }
    std::vector<int> order = sizes.taken;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return came[a] < came[b]; });
    if (order == sizes.taken || round == kMostRounds) return run;
    sizes.taken = std::move(order);
  }
}

PreparationFigures FiguresOf(const Program& program, const Trace& trace) {
  PreparationFigures figures;
  figures.epoch = ToSeconds(trace.makespan);
  int64_t begin = -1, end = 0, busy = 0, ready = 0;
  std::vector<int64_t> moved(program.schedule.num_micro_batches), taken(moved.size());
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const bool other_trainer = begin >= 0;  // copies do the same
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      if (IsPass(span, PreparationStage::kMove, ActionKind::kForward)) {
        moved[span.action.micro_batch] = span.end_ns;
      }
      const bool trains =
          (span.op == OpCode::kCompute && span.action.stage == PreparationStage::kTrain) ||
          span.op == OpCode::kStep;
      if (!trains || other_trainer) continue;
      if (IsPass(span, PreparationStage::kTrain, ActionKind::kForward)) {
        taken[span.action.micro_batch] = span.begin_ns;
        if (begin < 0) begin = span.begin_ns;
      }
      busy += span.end_ns - span.begin_ns;
      end = std::max(end, span.end_ns);
    }
  }
  for (size_t m = 0; m < moved.size(); ++m) ready += std::max<int64_t>(0, taken[m] - moved[m]);
  figures.first = static_cast<double>(begin) * 1e-9;
  figures.waiting = 1 - static_cast<double>(busy) / static_cast<double>(end - begin);
  figures.queue = static_cast<double>(ready) / static_cast<double>(end - begin);
  return figures;
}

}  // namespace pipelab
