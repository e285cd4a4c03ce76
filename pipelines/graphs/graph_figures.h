// Figures of an epoch with prepared batches, run or simulated.
//
//   const std::vector<BatchSeconds> seconds = SecondsOf(training.program(), trace);
//   Simulate(training.program(), PreparationCosts(training.program().schedule, seconds));
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_FIGURES_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_FIGURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/graphs/preparation.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// [batch] Seconds that the program's stages took for it: of a trace of one epoch on devices of one
// copy. Processor time of the device's thread; by the clock, where a trainer has several threads.
struct BatchSeconds {
  double sample = 0, gather = 0, move = 0, forward = 0, backward = 0, step = 0;
  double prepare() const { return sample + gather + move; }
  double train() const { return forward + backward + step; }
};
std::vector<BatchSeconds> SecondsOf(const Program& program, const Trace& trace,
                                    bool by_the_clock = false);

// Costs of such batches, for a program of as many; messages take nothing, being handed over.
CostTable PreparationCosts(const Schedule& schedule, absl::Span<const BatchSeconds> seconds);

// Simulates that the trainer takes batches as they come: in order first, then in the order in which
// they came, until that stays.
struct FirstComeRun {
  Program program;  // of that order
  Trace trace;
};
absl::StatusOr<FirstComeRun> SimulateFirstCome(PreparationSizes sizes,
                                               absl::Span<const BatchSeconds> seconds);

// Figures of a trace's trainer: its share of the epoch that it waits, from its first batch on; and
// batches that lie ready for it, on average over the epoch.
struct PreparationFigures {
  double epoch = 0, waiting = 0, first = 0;  // seconds; a share; seconds
  double queue = 0;
};
PreparationFigures FiguresOf(const Program& program, const Trace& trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_FIGURES_H_
